{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* secrets, cert-manager or chart. With "auto" the chart makes certificates, unless Secrets are there that this release has not
made, or no cluster is asked, as by "helm template": then each rendering would have other ones. */ -}}
{{- define "pmem-csi.certificateSource" -}}
{{- $source := .Values.certificates.source -}}
{{- if ne $source "auto" -}}
{{- $source -}}
{{- else if not (lookup "v1" "Namespace" "" "kube-system") -}}
secrets
{{- else -}}
{{- $others := list -}}
{{- range $role := list "registry" "node" "webhook" -}}
{{- $found := lookup "v1" "Secret" $.Release.Namespace (printf "%s-%s-secrets" (include "pmem-csi.prefix" $) $role) -}}
{{- if and $found (ne (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $found) $.Release.Name) -}}
{{- $others = append $others $role -}}
{{- end -}}
{{- end -}}
{{- ternary "secrets" "chart" (gt (len $others) 0) -}}
{{- end -}}
{{- end -}}

{{- /* The authority that the chart makes, once: its Secret is found again by lookup, which finds nothing in "helm template". As YAML
with cert and key, both in base64. Kept in .Release, where all Secrets of one run find the same. */ -}}
{{- define "pmem-csi.authority" -}}
{{- if not (hasKey .Release "pmemAuthority") -}}
{{- $found := lookup "v1" "Secret" .Release.Namespace (printf "%s-ca" (include "pmem-csi.prefix" .)) -}}
{{- $data := dig "data" (dict) $found -}}
{{- if and (index $data "tls.crt") (index $data "tls.key") -}}
{{- $_ := set .Release "pmemAuthority" (dict "cert" (index $data "tls.crt") "key" (index $data "tls.key")) -}}
{{- else -}}
{{- $made := genCAWithKey "pmem-csi CA" 7300 (genPrivateKey "ecdsa") -}}
{{- $_ := set .Release "pmemAuthority" (dict "cert" ($made.Cert | b64enc) "key" ($made.Key | b64enc)) -}}
{{- end -}}
{{- end -}}
{{- toYaml .Release.pmemAuthority -}}
{{- end -}}

{{- /* The data of a program's Secret: what is there, if it is of this authority, or new ones. list ROOT ROLE NAME; NAME is what the
certificate is for. */ -}}
{{- define "pmem-csi.leaf" -}}
{{- $root := index . 0 -}}
{{- $authority := include "pmem-csi.authority" $root | fromYaml -}}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace (printf "%s-%s-secrets" (include "pmem-csi.prefix" $root) (index . 1)) -}}
{{- $data := dig "data" (dict) $found -}}
{{- if and (index $data "tls.crt") (index $data "tls.key") (eq (index $data "ca.crt" | default "") $authority.cert) -}}
{{- pick $data "ca.crt" "tls.crt" "tls.key" | toYaml -}}
{{- else -}}
{{- $signer := buildCustomCert $authority.cert $authority.key -}}
{{- $made := genSignedCertWithKey (index . 2) nil (list (index . 2)) (int $root.Values.certificates.days) $signer (genPrivateKey "ecdsa") -}}
{{- dict "ca.crt" $authority.cert "tls.crt" ($made.Cert | b64enc) "tls.key" ($made.Key | b64enc) | toYaml -}}
{{- end -}}
{{- end -}}

{{- /* list ROOT NAME DATA */ -}}
{{- define "pmem-csi.secret" -}}
{{- $secret := dict "apiVersion" "v1" "kind" "Secret" "type" "Opaque" "data" (index . 2 | fromYaml)
	"metadata" (dict "name" (printf "%s-%s" (include "pmem-csi.prefix" (index . 0)) (index . 1)) "namespace" (index . 0).Release.Namespace) -}}
{{- include "pmem-csi.metadata" (list (index . 0) $secret) }}
---
{{ toYaml $secret }}
{{- end -}}
