package ops

import "embed"

// FS holds every file for operators, under the name that it is written out by.
//
//go:embed alerts.yaml
var FS embed.FS
