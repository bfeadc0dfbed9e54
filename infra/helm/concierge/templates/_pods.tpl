{{/* What the pods of the project's own programs have in common. Takes root, component and settings (the values of the component). */}}
{{- define "concierge.pod" -}}
{{- $selector := include "concierge.selector" . -}}
serviceAccountName: {{ include "concierge.name" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
# The first process of the pod is then one that reaps what tools leave behind.
shareProcessNamespace: true
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  # A volume with millions of files is not walked at each start.
  fsGroupChangePolicy: OnRootMismatch
affinity:
  podAntiAffinity:
    {{- if eq .root.Values.antiAffinity "hard" }}
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- $selector | nindent 12 }}
    {{- else }}
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- $selector | nindent 14 }}
    {{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
{{- with .settings.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Changes of what is read once, at the start, replace the pods. A Secret that the chart does not make needs a restart by hand. */}}
{{- define "concierge.checksums" -}}
checksum/providers: {{ toJson .Values.models.providers | sha256sum }}
{{- if .Values.secrets.create }}
checksum/secrets: {{ toJson .Values.secrets | sha256sum }}
{{- end }}
{{- end }}

{{- define "concierge.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The secrets that a component reads: variable → {secret, key}, as YAML. Takes root and component. */}}
{{- define "concierge.secretsRead" -}}
{{- $values := .root.Values -}}
{{- $keys := $values.secrets.keys -}}
{{- $read := dict -}}
{{- if ne .component "console" -}}
{{- $_ := set $read "KEY_SECRET" $keys.keySecret -}}
{{- $_ := set $read "SECRETS_KEY" $keys.secretsKey -}}
{{- range $variable, $store := dict "REDIS" $values.redis "DATABASE" $values.postgresql -}}
{{- $password := ternary $keys.redisPassword $keys.databasePassword (eq $variable "REDIS") -}}
{{- if $store.bundled -}}
{{- $_ := set $read (printf "%s_PASSWORD" $variable) $password -}}
{{- else if $store.external.urlKey -}}
{{- $_ := set $read (printf "%s_URL" $variable) $store.external.urlKey -}}
{{- else if $store.external.hasPassword -}}
{{- $_ := set $read (printf "%s_PASSWORD" $variable) $password -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq .component "console" -}}
{{- $_ := set $read "CONSOLE_SECRET" $keys.consoleSecret -}}
{{- end -}}
{{- if has .component (list "gateway" "console") -}}
{{- $_ := set $read "OPS_TOKEN" $keys.opsToken -}}
{{- end -}}
{{- if and (eq .component "worker") (has $values.webSearch.provider (list "brave" "tavily")) -}}
{{- $_ := set $read "WEB_SEARCH_KEY" $keys.webSearchKey -}}
{{- end -}}
{{- $own := include "concierge.secretName" .root -}}
{{- range $variable, $key := $read }}
{{ $variable }}: {secret: {{ $own | quote }}, key: {{ $key | quote }}}
{{- end }}
{{- if eq .component "worker" }}
{{- range $values.models.keys }}
{{ .variable }}: {secret: {{ .secret | default $own | quote }}, key: {{ .key | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{/* The variables that name the files of those secrets. */}}
{{- define "concierge.secretVariables" -}}
{{- range $variable, $_ := include "concierge.secretsRead" . | fromYaml }}
- name: {{ $variable }}_FILE
  value: /run/secrets/concierge/{{ lower $variable }}
{{- end }}
{{- end }}

{{/* The volume with the files of those secrets. */}}
{{- define "concierge.secretVolume" -}}
- name: secrets
  projected:
    defaultMode: 288 # 0440, which not every reader takes for octal
    sources:
      {{- range $variable, $place := include "concierge.secretsRead" . | fromYaml }}
      - secret:
          name: {{ $place.secret }}
          items:
            - { key: {{ $place.key }}, path: {{ lower $variable }} }
      {{- end }}
{{- end }}

{{/* The variables of what works on tenants' files. Takes root, component and settings. */}}
{{- define "concierge.variables" -}}
{{- $values := .root.Values -}}
{{- $name := include "concierge.name" .root -}}
- { name: NODE_ENV, value: production }
- { name: DATA_DIR, value: /data }
{{- if $values.redis.bundled }}
- { name: REDIS_URL, value: "redis://concierge@{{ $name }}-redis:6379" }
{{- else if not $values.redis.external.urlKey }}
- { name: REDIS_URL, value: {{ $values.redis.external.url | quote }} }
{{- end }}
{{- if and (not $values.redis.bundled) (gt (int $values.redis.external.slots) 1) }}
- { name: REDIS_SLOTS, value: {{ $values.redis.external.slots | quote }} }
{{- end }}
{{- if $values.postgresql.bundled }}
- { name: DATABASE_URL, value: "postgres://concierge@{{ $name }}-postgresql:5432/concierge" }
{{- else if not $values.postgresql.external.urlKey }}
- { name: DATABASE_URL, value: {{ $values.postgresql.external.url | quote }} }
{{- end }}
{{- with .settings.databasePool }}
- { name: DATABASE_POOL, value: {{ . | quote }} }
{{- end }}
- { name: SHUTDOWN_GRACE_S, value: {{ $values.shutdownGraceSeconds | quote }} }
- { name: LOG_LEVEL, value: {{ ternary "warn" $values.logLevel (eq .component "cli") }} }
{{- with $values.publicUrl }}
- { name: PUBLIC_URL, value: {{ . | quote }} }
{{- end }}
{{- with $values.extraCa.configMap }}
- { name: NODE_EXTRA_CA_CERTS, value: /run/ca/ca.pem }
{{- end }}
{{- include "concierge.secretVariables" . }}
{{- range $variable, $value := $values.extraEnv }}
- { name: {{ $variable }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "concierge.mounts" -}}
- { name: data, mountPath: /data }
- { name: secrets, mountPath: /run/secrets/concierge, readOnly: true }
- { name: tmp, mountPath: /tmp }
{{- if .Values.extraCa.configMap }}
- { name: ca, mountPath: /run/ca, readOnly: true }
{{- end }}
{{- end }}

{{- define "concierge.volumes" -}}
- name: data
  persistentVolumeClaim:
    claimName: {{ include "concierge.claimName" .root }}
- name: tmp
  emptyDir:
    sizeLimit: 2Gi
{{- with .root.Values.extraCa }}
{{- if .configMap }}
- name: ca
  configMap:
    name: {{ .configMap }}
    items:
      - { key: {{ .key }}, path: ca.pem }
{{- end }}
{{- end }}
{{ include "concierge.secretVolume" . }}
{{- end }}

{{/* A pod is ended this long after it was told to end: its hook, the grace, and room to close connections. Takes root and settings. */}}
{{- define "concierge.endSeconds" -}}
{{- add .root.Values.shutdownGraceSeconds (.settings.preStopSeconds | default 0) (.settings.leaveSeconds | default 0) 20 -}}
{{- end }}

{{/* Takes root, component and settings. */}}
{{- define "concierge.disruptionBudget" -}}
{{- if .root.Values.podDisruptionBudgets }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "concierge.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  # A pod that is not ready, as while Redis is away, does not hold up a node that is to be emptied.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "concierge.selector" . | nindent 6 }}
{{- end }}
{{- end }}
