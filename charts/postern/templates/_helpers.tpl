{{- /* Labels that a chart adds to every object. */ -}}
{{- define "postern.labels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{- /* registry/repository:tag, or @digest where there is one. */ -}}
{{- define "postern.image" -}}
{{- $name := .image.repository -}}
{{- if .image.registry -}}{{- $name = printf "%s/%s" .image.registry $name -}}{{- end -}}
{{- if .image.digest -}}
{{ printf "%s@%s" $name .image.digest | quote }}
{{- else -}}
{{ printf "%s:%s" $name (.image.tag | default .chart.AppVersion) | quote }}
{{- end -}}
{{- end -}}
