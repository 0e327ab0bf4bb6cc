{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* What values.schema.json cannot say: values that do not go together. */ -}}
{{- define "pmem-csi.validate" -}}
{{- $prefix := include "pmem-csi.prefix" . -}}
{{- if not (regexMatch "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$" $prefix) -}}
{{- fail (printf "names of objects would begin with %s, which has to be at most 32 letters, digits and dashes: set namePrefix" $prefix) -}}
{{- end -}}
{{- if and (ne .Values.scheduler.mode "none") (not (include "pmem-csi.hasController" .)) -}}
{{- fail (printf "scheduler.mode %s asks a controller, and mode %s has none: set mode lvm or direct" .Values.scheduler.mode .Values.mode) -}}
{{- end -}}
{{- if and (eq .Values.scheduler.mode "extender") (not (contains "." .Values.driverName)) -}}
{{- fail (printf "the API server takes no webhook pod-hook.%s, whose name needs three parts: set a driverName with a dot, such as %s.example.com" .Values.driverName .Values.driverName) -}}
{{- end -}}
{{- if and (ne .Values.certificates.source "secrets") (not (include "pmem-csi.hasController" .)) -}}
{{- fail (printf "mode %s uses no certificates: leave certificates.source out" .Values.mode) -}}
{{- end -}}
{{- if eq (int .Values.scheduler.port) (int .Values.scheduler.probePort) -}}
{{- fail "scheduler.port and scheduler.probePort are the same" -}}
{{- end -}}
{{- end -}}
