package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"fairlane/control"
)

// MaxDocumentBytes bounds an encoded document; ten thousand tenants with every field of their own need a tenth.
const MaxDocumentBytes = 64 << 20

// Encode writes the document in its one form: compact JSON, keys in the order of the declaration,
// tenants by code. Equal documents give equal bytes. NaN and infinities are errors.
func Encode(d *Document) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d.normal()); err != nil {
		return nil, fmt.Errorf("policy document: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Digest is the SHA-256 of an encoded document, by which a version is known for good.
func Digest(encoded []byte) [32]byte { return sha256.Sum256(encoded) }

// Decode reads a document and refuses whatever it would otherwise have to guess at: unknown, doubled
// and (in the newest schema) missing keys, null, values of another type, text after the end, more than
// 16 levels, more than MaxDocumentBytes. What an older schema lacks gets the values under which its
// platform goes on as it did, and the document comes back in the newest schema. The error is a CodeInvalid control.Error that names every
// place. Whether the document may be published is Validate's to say.
func Decode(data []byte) (*Document, error) {
	if len(data) > MaxDocumentBytes {
		return nil, control.Errorf(control.CodeTooLarge, "policy document of %d bytes, at most %d are taken", len(data), MaxDocumentBytes)
	}
	if err := control.Invalid(inspect(data)); err != nil {
		return nil, err
	}
	var d Document
	d.beforeSchema2(data)
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, control.Invalid([]control.FieldError{{Field: "document", Key: KeyBadJSON, Args: args{"offset": int64(0)}}})
	}
	d.afterSchema1()
	return d.normal(), nil
}
