package policyfile

import (
	"github.com/goccy/go-yaml"

	"fairlane/policy"
)

// Write returns the document as YAML that Read takes, keys in the order of the declaration.
func Write(d *policy.Document) ([]byte, error) {
	encoded, err := policy.Encode(d)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(encoded)
}
