{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* The name of the values for an object: node, controller, scheduler or webhook; or node-setup. list ROOT OBJECT. */ -}}
{{- define "pmem-csi.section" -}}
{{- (index . 1).metadata.name | trimPrefix (printf "%s-" (include "pmem-csi.prefix" (index . 0))) | replace "second-" "" -}}
{{- end -}}

{{- /* Changes a DaemonSet or Deployment: list ROOT OBJECT. */ -}}
{{- define "pmem-csi.workload" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- $section := include "pmem-csi.section" . -}}
{{- $pod := $object.spec.template.spec -}}
{{- $values := dict -}}
{{- if eq $section "node-setup" -}}
{{- $values = include "pmem-csi.nodeSetupValues" $root | fromYaml -}}
{{- else -}}
{{- $values = index $root.Values $section -}}
{{- end -}}
{{- if eq $section "node" -}}
{{- include "pmem-csi.nodesOfDriver" (list $root $pod) -}}
{{- include "pmem-csi.memory" (list $root $pod) -}}
{{- include "pmem-csi.inlineVolumes" (list $root $pod) -}}
{{- end -}}
{{- if eq $object.kind "Deployment" -}}
{{- $_ := set $object.spec "replicas" $values.replicas -}}
{{- end -}}
{{- include "pmem-csi.podMetadata" (list $root $object.spec.template.metadata $values) -}}
{{- with $values.priorityClassName -}}
{{- $_ := set $pod "priorityClassName" . -}}
{{- end -}}
{{- if not (kindIs "invalid" $values.tolerations) -}}
{{- $_ := set $pod "tolerations" $values.tolerations -}}
{{- end -}}
{{- with $values.nodeSelector -}}
{{- $_ := set $pod "nodeSelector" (merge (dict "kubernetes.io/os" "linux") .) -}}
{{- end -}}
{{- with $values.affinity -}}
{{- $_ := set $pod "affinity" . -}}
{{- end -}}
{{- $spread := $object.metadata.name | trimPrefix (include "pmem-csi.prefix" $root) | printf "topology-spread%s" -}}
{{- if and $root.Values.topologySpread ($root.Files.Get (printf "files/%s.yaml" $spread)) -}}
{{- $_ := mergeOverwrite $pod (include "pmem-csi.text" (list $root $spread) | fromYaml) -}}
{{- end -}}
{{- if and $root.Values.snapshotter.enabled (eq $section "controller") -}}
{{- $_ := set $pod "containers" (append $pod.containers (include "pmem-csi.text" (list $root "snapshots-container") | fromYaml)) -}}
{{- end -}}
{{- if and $root.Values.kata.enabled (eq $section "node") -}}
{{- include "pmem-csi.kata" (list $root $pod) -}}
{{- end -}}
{{- with $root.Values.imagePullSecrets -}}
{{- $_ := set $pod "imagePullSecrets" . -}}
{{- end -}}
{{- $names := list -}}
{{- range concat ($pod.initContainers | default list) $pod.containers -}}
{{- $names = append $names .name -}}
{{- include "pmem-csi.container" (list $root . $values) -}}
{{- end -}}
{{- range $value := list "resources" "extraArgs" -}}
{{- range $name, $_ := index $values $value -}}
{{- if not (has $name $names) -}}
{{- fail (printf "%s.%s names the container %s, but with these values the containers are %s" $section $value $name (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The pods that prepare memory run on nodes of their own label, and take the rest from the section node. */ -}}
{{- define "pmem-csi.nodeSetupValues" -}}
{{- toYaml (merge (dict "resources" dict "extraArgs" dict) (pick .Values.node "tolerations" "priorityClassName" "podLabels" "podAnnotations")) -}}
{{- end -}}

{{- /* Changes on which nodes the driver runs; what node.nodeSelector and node.affinity say is set later: list ROOT POD. */ -}}
{{- define "pmem-csi.nodesOfDriver" -}}
{{- $root := index . 0 -}}
{{- $pod := index . 1 -}}
{{- if and $pod.affinity (not (include "pmem-csi.selectsByFeature" $root)) -}}
{{- if or $root.Values.node.nodeSelector $root.Values.node.affinity -}}
{{- $_ := unset $pod "affinity" -}}
{{- $_ := set $pod "nodeSelector" (merge (include "pmem-csi.nodeLabels" $root | fromJson) $pod.nodeSelector) -}}
{{- else -}}
{{- $required := $pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution -}}
{{- $_ := set $required "nodeSelectorTerms" (list (first $required.nodeSelectorTerms)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Lets pmem-ns-init prepare memory as the section memory says: list ROOT POD. */ -}}
{{- define "pmem-csi.memory" -}}
{{- $root := index . 0 -}}
{{- $pod := index . 1 -}}
{{- $memory := $root.Values.memory -}}
{{- if and $memory.initLabels (eq $root.Values.mode "direct") -}}
{{- $_ := set $pod "initContainers" (list (include "pmem-csi.text" (list $root "memory-preparation-direct") | fromYaml)) -}}
{{- else -}}
{{- range $container := $pod.initContainers -}}
{{- if eq $container.name "pmem-ns-init" -}}
{{- $args := $container.args -}}
{{- if $memory.initLabels -}}
{{- $args = append $args "-initLabels" -}}
{{- end -}}
{{- if ne $memory.unlabelled "skip" -}}
{{- $args = append $args (printf "-unlabelled=%s" $memory.unlabelled) -}}
{{- end -}}
{{- $_ := set $container "args" $args -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Limits for inline volumes, where they are not the program's own: list ROOT POD. The driver's container is the first one. */ -}}
{{- define "pmem-csi.inlineVolumes" -}}
{{- $limits := (index . 0).Values.inlineVolumes -}}
{{- $container := first (index . 1).containers -}}
{{- if ne (int $limits.maxVolumes) 256 -}}
{{- $_ := set $container "args" (append $container.args (printf "-maxInlineVolumes=%d" (int $limits.maxVolumes))) -}}
{{- end -}}
{{- if ne $limits.maxBytes "0" -}}
{{- $_ := set $container "args" (append $container.args (printf "-maxInlineBytes=%s" $limits.maxBytes)) -}}
{{- end -}}
{{- end -}}

{{- /* What the driver on a node needs for direct volumes, whose container is the first one: list ROOT POD. */ -}}
{{- define "pmem-csi.kata" -}}
{{- $pod := index . 1 -}}
{{- $kata := include "pmem-csi.text" (list (index . 0) "kata-node") | fromYaml -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $pod "hostPID" $kata.hostPID -}}
{{- $_ := set $pod "volumes" (concat $pod.volumes $kata.volumes) -}}
{{- $_ := set $container "volumeMounts" (concat $container.volumeMounts $kata.volumeMounts) -}}
{{- end -}}

{{- /* Changes a pod's metadata: list ROOT METADATA SECTION-VALUES. */ -}}
{{- define "pmem-csi.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $metadata := index . 1 -}}
{{- $values := index . 2 -}}
{{- if include "pmem-csi.hasWebhook" $root -}}
{{- $_ := set $metadata.labels (printf "%s/webhook" $root.Values.driverName) "ignore" -}}
{{- end -}}
{{- $_ := set $metadata "labels" (mergeOverwrite (dict) $values.podLabels $metadata.labels) -}}
{{- with $values.podAnnotations -}}
{{- $_ := set $metadata "annotations" (mergeOverwrite (dict) . ($metadata.annotations | default dict)) -}}
{{- end -}}
{{- end -}}

{{- /* Changes a container: list ROOT CONTAINER SECTION-VALUES. */ -}}
{{- define "pmem-csi.container" -}}
{{- $root := index . 0 -}}
{{- $container := index . 1 -}}
{{- $values := index . 2 -}}
{{- /* Without a value: node.fakeRegionSize is empty. */ -}}
{{- $args := without $container.args "-fakeRegionSize=" -}}
{{- /* 3 and text are the programs' own defaults. */ -}}
{{- if hasPrefix "/usr/local/bin/" (first ($container.command | default (list ""))) -}}
{{- $_ := set $container "imagePullPolicy" $root.Values.image.pullPolicy -}}
{{- if ne (int $root.Values.log.level) 3 -}}
{{- $args = append $args (printf "-v=%d" (int $root.Values.log.level)) -}}
{{- end -}}
{{- if ne $root.Values.log.format "text" -}}
{{- $args = append $args (printf "-logging-format=%s" $root.Values.log.format) -}}
{{- end -}}
{{- else if eq $container.name "external-provisioner" -}}
{{- $_ := set $container "imagePullPolicy" $root.Values.provisioner.image.pullPolicy -}}
{{- else if eq $container.name "external-resizer" -}}
{{- $_ := set $container "imagePullPolicy" $root.Values.resizer.image.pullPolicy -}}
{{- else if eq $container.name "external-snapshotter" -}}
{{- $_ := set $container "imagePullPolicy" $root.Values.snapshotter.image.pullPolicy -}}
{{- else -}}
{{- $_ := set $container "imagePullPolicy" $root.Values.scheduler.image.pullPolicy -}}
{{- end -}}
{{- $_ := set $container "args" (concat $args (index $values.extraArgs $container.name | default list)) -}}
{{- with index $values.resources $container.name -}}
{{- $_ := set $container "resources" (mergeOverwrite ($container.resources | default dict) .) -}}
{{- end -}}
{{- end -}}
