{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* The objects of a file in files/, changed as the values say: list ROOT NAME. */ -}}
{{- define "pmem-csi.objects" -}}
{{- $root := index . 0 -}}
{{- range $document := splitList "\n---\n" (include "pmem-csi.text" .) -}}
{{- $object := fromYaml $document -}}
{{- with $object.Error -}}
{{- fail (printf "%s: %s" (index $ 1) .) -}}
{{- end -}}
{{- $skipped := and (not $root.Values.kata.images) (hasSuffix "-controller-pods" $object.metadata.name) -}}
{{- if not $skipped -}}
{{- include "pmem-csi.metadata" (list $root $object) -}}
{{- if has $object.kind (list "DaemonSet" "Deployment") -}}
{{- include "pmem-csi.workload" (list $root $object) -}}
{{- else if eq $object.kind "StorageClass" -}}
{{- include "pmem-csi.storageClass" (list $root $object) -}}
{{- else if eq $object.kind "StorageProfile" -}}
{{- include "pmem-csi.storageProfile" (list $root $object) -}}
{{- else if eq $object.kind "CustomResourceDefinition" -}}
{{- include "pmem-csi.keep" $object -}}
{{- else if and $root.Values.kata.enabled (eq $object.kind "SecurityContextConstraints") -}}
{{- $_ := set $object "allowHostPID" (or $object.allowHostPID (eq (include "pmem-csi.section" (list $root $object)) "node")) -}}
{{- else if and (eq $object.kind "CSIDriver") (not $root.Values.inlineVolumes.enabled) -}}
{{- $_ := set $object.spec "volumeLifecycleModes" (list "Persistent") -}}
{{- else if eq $object.kind "MutatingWebhookConfiguration" -}}
{{- $_ := set (index $object.webhooks 0) "failurePolicy" $root.Values.webhook.failurePolicy -}}
{{- end }}
---
{{ toYaml $object }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Changes an object: list ROOT OBJECT. */ -}}
{{- define "pmem-csi.metadata" -}}
{{- $root := index . 0 -}}
{{- $metadata := (index . 1).metadata -}}
{{- $labels := include "pmem-csi.labels" $root | fromYaml -}}
{{- $_ := set $metadata "labels" (mergeOverwrite (dict) $root.Values.labels $labels ($metadata.labels | default dict)) -}}
{{- with $root.Values.annotations -}}
{{- $_ := set $metadata "annotations" (mergeOverwrite (dict) . ($metadata.annotations | default dict)) -}}
{{- end -}}
{{- end -}}

{{- define "pmem-csi.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- /* Makes Helm leave an object in the cluster when the release is uninstalled. */ -}}
{{- define "pmem-csi.keep" -}}
{{- $_ := set .metadata "annotations" (mergeOverwrite (dict) (.metadata.annotations | default dict) (dict "helm.sh/resource-policy" "keep")) -}}
{{- end -}}

{{- /* Changes a StorageClass: list ROOT OBJECT. */ -}}
{{- define "pmem-csi.storageClass" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.storageClasses.keep -}}
{{- include "pmem-csi.keep" (index . 1) -}}
{{- end -}}
{{- /* Without a controller nothing lets volumes grow. */ -}}
{{- if not (include "pmem-csi.hasController" $root) -}}
{{- $_ := unset (index . 1) "allowVolumeExpansion" -}}
{{- end -}}
{{- $metadata := (index . 1).metadata -}}
{{- $annotations := $metadata.annotations | default dict -}}
{{- if eq $metadata.name $root.Values.storageClasses.default -}}
{{- $_ := set $annotations "storageclass.kubernetes.io/is-default-class" "true" -}}
{{- end -}}
{{- $profiles := include "pmem-csi.profiles" $root | splitList " " -}}
{{- if and $root.Values.kubevirt.enabled (has $metadata.name $profiles) -}}
{{- $_ := set $annotations "cdi.kubevirt.io/clone-strategy" "csi-clone" -}}
{{- if eq $metadata.name $root.Values.kubevirt.defaultClass -}}
{{- $_ := set $annotations "storageclass.kubevirt.io/is-default-virt-class" "true" -}}
{{- end -}}
{{- end -}}
{{- with $annotations -}}
{{- $_ := set $metadata "annotations" . -}}
{{- end -}}
{{- end -}}

{{- /* Changes a StorageProfile: list ROOT OBJECT. CDI deletes it with its class. */ -}}
{{- define "pmem-csi.storageProfile" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- if $root.Values.storageClasses.keep -}}
{{- include "pmem-csi.keep" $object -}}
{{- end -}}
{{- if $root.Values.snapshotter.enabled -}}
{{- $_ := set $object.spec "snapshotClass" (printf "%s-snapclass" (include "pmem-csi.prefix" $root)) -}}
{{- end -}}
{{- end -}}

{{- /* The names of the classes that have a StorageProfile. */ -}}
{{- define "pmem-csi.profiles" -}}
{{- $names := list -}}
{{- range $document := splitList "\n---\n" (include "pmem-csi.text" (list . "kubevirt")) -}}
{{- $names = append $names (fromYaml $document).metadata.name -}}
{{- end -}}
{{- join " " $names -}}
{{- end -}}
