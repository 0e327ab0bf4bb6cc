{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* What values.schema.json cannot say: values that do not go together. */ -}}
{{- define "pmem-csi.validate" -}}
{{- $prefix := include "pmem-csi.prefix" . -}}
{{- if not (regexMatch "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$" $prefix) -}}
{{- fail (printf "names of objects would begin with %s, which has to be at most 32 letters, digits and dashes: set namePrefix" $prefix) -}}
{{- end -}}
{{- if and (ne .Values.scheduler.mode "none") (not (include "pmem-csi.hasController" .)) -}}
{{- fail (printf "scheduler.mode %s needs a controller, which mode %s does not have: set mode to lvm or direct" .Values.scheduler.mode .Values.mode) -}}
{{- end -}}
{{- if and (include "pmem-csi.hasWebhook" .) (not (contains "." .Values.driverName)) -}}
{{- $reason := printf "the API server refuses a webhook pod-hook.%s, because its name needs three parts" .Values.driverName -}}
{{- fail (printf "%s: set a driverName with a dot, such as %s.example.com" $reason .Values.driverName) -}}
{{- end -}}
{{- if and (not (has .Values.certificates.source (list "auto" "secrets"))) (not (include "pmem-csi.hasController" .)) -}}
{{- fail (printf "mode %s uses no certificates: do not set certificates.source" .Values.mode) -}}
{{- end -}}
{{- if and .Values.snapshotter.enabled (not (include "pmem-csi.hasController" .)) -}}
{{- fail (printf "snapshotter.enabled needs a controller, which mode %s does not have: set mode to lvm or direct" .Values.mode) -}}
{{- end -}}
{{- if and .Values.snapshotter.groups (not .Values.snapshotter.enabled) -}}
{{- fail "snapshotter.groups needs external-snapshotter: set snapshotter.enabled, too" -}}
{{- end -}}
{{- if and (ne .Values.memory.unlabelled "skip") (not (has .Values.mode (list "lvm" "distributed"))) -}}
{{- fail (printf "memory.unlabelled %s makes volume groups, which mode %s does not use: set mode to lvm or distributed" .Values.memory.unlabelled .Values.mode) -}}
{{- end -}}
{{- if and .Values.memory.initLabels (eq .Values.mode "fake") -}}
{{- fail "memory.initLabels: mode fake uses no persistent memory: set another mode" -}}
{{- end -}}
{{- if eq (int .Values.scheduler.port) (int .Values.scheduler.probePort) -}}
{{- fail (printf "scheduler.port and scheduler.probePort are the same, %v: set one of them to another port" .Values.scheduler.port) -}}
{{- end -}}
{{- if and .Values.kubevirt.enabled (not .Values.storageClasses.create) -}}
{{- fail "kubevirt.enabled: CDI deletes a StorageProfile without a class, and the chart creates no classes while storageClasses.create is false: apply manifests/kubevirt/storageprofiles.yaml" -}}
{{- end -}}
{{- with .Values.kubevirt.defaultClass -}}
{{- $profiles := include "pmem-csi.profiles" $ | splitList " " -}}
{{- if or (not $.Values.kubevirt.enabled) (not (has . $profiles)) -}}
{{- fail (printf "kubevirt.defaultClass %s has no StorageProfile: set kubevirt.enabled, and it to one of %s" . (join ", " $profiles)) -}}
{{- end -}}
{{- end -}}
{{- include "pmem-csi.validatePorts" . -}}
{{- include "pmem-csi.validateDefaultClass" . -}}
{{- end -}}

{{- /* A kube-scheduler is beside the extender, in the pod of the second scheduler and in the network of a control-plane node. */ -}}
{{- define "pmem-csi.validatePorts" -}}
{{- $taken := dict -}}
{{- if eq .Values.scheduler.mode "second-scheduler" -}}
{{- $taken = dict "port" (dict "8001" "the extender's probes" "10259" "kube-scheduler") -}}
{{- else if eq .Values.scheduler.mode "extender" -}}
{{- $taken = dict "port" (dict "10259" "kube-scheduler") "probePort" (dict "10259" "kube-scheduler") -}}
{{- end -}}
{{- range $name, $ports := $taken -}}
{{- $port := index $.Values.scheduler $name | toString -}}
{{- with index $ports $port -}}
{{- fail (printf "scheduler.%s: %s is the port of %s beside it: set another one" $name $port .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pmem-csi.validateDefaultClass" -}}
{{- with .Values.storageClasses.default -}}
{{- if not $.Values.storageClasses.create -}}
{{- fail (printf "storageClasses.default %s: the chart creates no classes while storageClasses.create is false: do not set a default" .) -}}
{{- end -}}
{{- $files := list "storageclasses" -}}
{{- if include "pmem-csi.hasController" $ -}}
{{- $files = append $files "storageclasses-controller" -}}
{{- end -}}
{{- $classes := list -}}
{{- range $file := $files -}}
{{- range $document := splitList "\n---\n" (include "pmem-csi.text" (list $ $file)) -}}
{{- $classes = append $classes (fromYaml $document).metadata.name -}}
{{- end -}}
{{- end -}}
{{- if not (has . $classes) -}}
{{- fail (printf "storageClasses.default %s is not a class of the chart: set it to one of %s" . (join ", " $classes)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
