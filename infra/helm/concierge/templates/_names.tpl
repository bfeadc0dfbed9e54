{{/* What every object of this release begins with. */}}
{{- define "concierge.name" -}}
{{- $name := ternary .Release.Name (printf "%s-concierge" .Release.Name) (contains "concierge" .Release.Name) -}}
{{- $name | trunc 45 | trimSuffix "-" -}}
{{- end }}

{{/* The labels by which the pods of one component are found. Takes root and component. */}}
{{- define "concierge.selector" -}}
app.kubernetes.io/name: concierge
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The labels of an object. Takes root and component. */}}
{{- define "concierge.labels" -}}
{{ include "concierge.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Name and labels of an object. Takes root, component and, where it is not the component, suffix. */}}
{{- define "concierge.metadata" -}}
name: {{ include "concierge.name" .root }}-{{ .suffix | default .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "concierge.labels" . | nindent 2 }}
{{- end }}

{{/* The image of one of the project's own programs. Takes root and image (a name as in infra/Dockerfile). */}}
{{- define "concierge.image" -}}
{{- with .root.Values.image -}}
{{- if .registry }}{{ trimSuffix "/" .registry }}/{{ end }}concierge-{{ $.image }}:{{ .tag | default $.root.Chart.AppVersion }}
{{- with index .digests $.image }}@{{ . }}{{ end }}
{{- end -}}
{{- end }}

{{- define "concierge.secretName" -}}
{{- if .Values.secrets.create }}{{ include "concierge.name" . }}-secrets{{ else }}{{ .Values.secrets.existingSecret }}{{ end -}}
{{- end }}

{{- define "concierge.claimName" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-data" (include "concierge.name" .)) -}}
{{- end }}

