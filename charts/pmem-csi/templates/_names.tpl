{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* What names of objects begin with. */ -}}
{{- define "pmem-csi.prefix" -}}
{{- if .Values.namePrefix -}}
{{- .Values.namePrefix -}}
{{- else if eq .Values.driverName "pmem-csi.intel.com" -}}
pmem-csi
{{- else -}}
{{- .Release.Name -}}
{{- end -}}
{{- end -}}

{{- define "pmem-csi.image" -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository .tag -}}
{{- end -}}
{{- end -}}

{{- /* "true" where nodes register with a controller. */ -}}
{{- define "pmem-csi.hasController" -}}
{{- if has .Values.mode (list "lvm" "direct") -}}true{{- end -}}
{{- end -}}

{{- define "pmem-csi.hasWebhook" -}}
{{- if and (ne .Values.scheduler.mode "none") .Values.webhook.enabled -}}true{{- end -}}
{{- end -}}

{{- /* A label that keeps the second driver of a cluster from the nodes of the first one. */ -}}
{{- define "pmem-csi.nodeLabel" -}}
{{- if eq .Values.driverName "pmem-csi.intel.com" -}}
pmem
{{- else -}}
{{- include "pmem-csi.prefix" . -}}
{{- end -}}
{{- end -}}

{{- /* The labels that an administrator sets, as JSON. */ -}}
{{- define "pmem-csi.nodeLabels" -}}
{{- .Values.node.nodeSelector | default (dict "storage" (include "pmem-csi.nodeLabel" .)) | toJson -}}
{{- end -}}

{{- /* Not empty where nodes with the label of Node Feature Discovery are selected, too, as in the manifests. */ -}}
{{- define "pmem-csi.selectsByFeature" -}}
{{- if not (or .Values.node.nodeSelector .Values.node.affinity (ne .Values.driverName "pmem-csi.intel.com")) -}}
true
{{- end -}}
{{- end -}}

{{- define "pmem-csi.nodeSelector" -}}
{{- if include "pmem-csi.selectsByFeature" . -}}
[{{ include "pmem-csi.nodeLabels" . }},{"feature.node.kubernetes.io/memory-nv.dax":"true","storage":null}]
{{- else -}}
{{- include "pmem-csi.nodeLabels" . -}}
{{- end -}}
{{- end -}}

{{- define "pmem-csi.schedulerNames" -}}
{{- $own := ternary "default-scheduler" (printf "%s-scheduler" (include "pmem-csi.prefix" .)) (ne .Values.scheduler.mode "second-scheduler") -}}
{{- .Values.webhook.schedulerNames | default (list $own) | join "," -}}
{{- end -}}

{{- /* Of the cluster's version, without what a provider adds to it. */ -}}
{{- define "pmem-csi.kubeScheduler" -}}
{{- $image := .Values.scheduler.image -}}
{{- $tag := $image.tag | default (regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version) -}}
{{- include "pmem-csi.image" (dict "repository" $image.repository "tag" $tag "digest" $image.digest) -}}
{{- end -}}

{{- /* The text of a file in files/, with the values in their places: list ROOT NAME. */ -}}
{{- define "pmem-csi.text" -}}
{{- $root := index . 0 -}}
{{- $values := $root.Values -}}
{{- $image := $values.image -}}
{{- $texts := dict
	"image" (include "pmem-csi.image" (dict "repository" $image.repository "tag" ($image.tag | default $root.Chart.AppVersion) "digest" $image.digest))
	"provisioner" (include "pmem-csi.image" $values.provisioner.image)
	"resizer" (include "pmem-csi.image" $values.resizer.image)
	"snapshotter" (include "pmem-csi.image" $values.snapshotter.image)
	"groups" ($values.snapshotter.groups | toString)
	"kube-scheduler" (include "pmem-csi.kubeScheduler" $root)
	"kubelet" $values.kubeletDir
	"group" "pmem-csi.intel.com"
	"driver" $values.driverName
	"dashed-driver" (replace "." "-" $values.driverName)
	"share" ($values.node.share | toString)
	"fake-size" $values.node.fakeRegionSize
	"node-selector" (include "pmem-csi.nodeSelector" $root)
	"scheduler-names" (include "pmem-csi.schedulerNames" $root)
	"node-label" (include "pmem-csi.nodeLabel" $root)
	"port" ($values.scheduler.port | toString)
	"probe-port" ($values.scheduler.probePort | toString)
	"namespace" $root.Release.Namespace
	"prefix" (include "pmem-csi.prefix" $root) -}}
{{- $text := $root.Files.Get (printf "files/%s.yaml" (index . 1)) | required (printf "the chart has no files/%s.yaml" (index . 1)) -}}
{{- range $name, $value := $texts -}}
{{- $text = replace (printf "<%s>" $name) $value $text -}}
{{- end -}}
{{- $text -}}
{{- end -}}
