package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"fairlane/control"
	"fairlane/policy"
)

// File is a document with the places of its fields in the text that it was read from.
type File struct {
	Name     string
	Document *policy.Document
	lines    map[string]int    // by path with numbers
	places   map[string]string // the same path of one that ends with a name
}

// Read reads a document. name is what errors call the file. Every wrong field is in the error, which is a
// *control.Error with the line before each field where the text has one.
func Read(name string, text []byte) (*File, error) {
	if len(text) > policy.MaxDocumentBytes {
		return nil, control.Errorf(control.CodeTooLarge, "%s: %d bytes, at most %d are taken", name, len(text), policy.MaxDocumentBytes)
	}
	f := &File{Name: name, lines: map[string]int{}, places: map[string]string{}}
	asJSON := bytes.TrimPrefix(text, []byte("\ufeff"))
	if trimmed := bytes.TrimLeft(asJSON, " \t\r\n"); len(trimmed) == 0 {
		return nil, control.Errorf(control.CodeInvalid, "%s: the file is empty", name)
	} else if trimmed[0] != '{' {
		var err error
		if asJSON, err = f.convert(asJSON); err != nil {
			return nil, err
		}
	}
	doc, err := policy.Decode(asJSON)
	if err != nil {
		return nil, f.place(err)
	}
	f.Document = doc
	return f, nil
}

// Check says by which of the policy's rules the document may not be used, with lines; nil when it may.
func (f *File) Check(broken []control.FieldError) error { return f.place(control.Invalid(broken)) }

// place puts file and line before every field of an error.
func (f *File) place(err error) error {
	var told *control.Error
	if !errors.As(err, &told) {
		return err
	}
	if len(told.Fields) == 0 {
		return control.Errorf(told.Code, "%s: %s", f.Name, told.Message)
	}
	out := make([]control.FieldError, len(told.Fields))
	for i, field := range told.Fields {
		out[i] = field
		out[i].Field = f.at(field.Field) + field.Field
	}
	return control.Invalid(out)
}

// at is the file and line of a field, or of the nearest thing around it that the text has.
func (f *File) at(path string) string {
	for around := f.numbered(path); ; {
		if line, ok := f.lines[around]; ok {
			return f.Name + ":" + strconv.Itoa(line) + ": "
		}
		cut := strings.LastIndexAny(around, ".[")
		if cut <= 0 {
			return f.Name + ": "
		}
		around = around[:cut]
	}
}

// convert turns YAML into JSON, and notes the line of every value.
func (f *File) convert(text []byte) ([]byte, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, control.Errorf(control.CodeInvalid, "%s: %s", f.Name, said(err))
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, control.Errorf(control.CodeInvalid, "%s: one document is needed, there are %d", f.Name, len(file.Docs))
	}
	var out bytes.Buffer
	c := &converter{file: f, out: &out}
	if err := c.value("", file.Docs[0].Body, 0); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// said is the parser's word on what is wrong, on one line.
func said(err error) string {
	var syntax interface{ GetMessage() string }
	text := err.Error()
	if errors.As(err, &syntax) {
		text = syntax.GetMessage()
		var where yaml.Error
		if errors.As(err, &where) && where.GetToken() != nil && where.GetToken().Position != nil {
			text = fmt.Sprintf("line %d: %s", where.GetToken().Position.Line, text)
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

type converter struct {
	file *File
	out  *bytes.Buffer
}

const maxDepth = 32

func (c *converter) fault(n ast.Node, format string, args ...any) error {
	return control.Errorf(control.CodeInvalid, "%s: line %d: %s", c.file.Name, line(n), fmt.Sprintf(format, args...))
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

func (c *converter) value(path string, n ast.Node, depth int) error {
	if depth > maxDepth {
		return c.fault(n, "more than %d levels", maxDepth)
	}
	if _, noted := c.file.lines[path]; !noted && path != "" {
		c.file.lines[path] = line(n)
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		return c.mapping(path, v.Values, depth)
	case *ast.MappingValueNode:
		return c.mapping(path, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		c.out.WriteByte('[')
		for i, item := range v.Values {
			if i > 0 {
				c.out.WriteByte(',')
			}
			place := path + "[" + strconv.Itoa(i) + "]"
			c.alias(path, place, item)
			if err := c.value(place, item, depth+1); err != nil {
				return err
			}
		}
		c.out.WriteByte(']')
		return nil
	case *ast.StringNode:
		return c.text(v.Value)
	case *ast.LiteralNode:
		return c.text(v.Value.Value)
	case *ast.BoolNode:
		c.out.WriteString(strconv.FormatBool(v.Value))
	case *ast.NullNode:
		c.out.WriteString("null")
	case *ast.IntegerNode:
		fmt.Fprint(c.out, v.Value)
	case *ast.FloatNode:
		text, err := json.Marshal(v.Value)
		if err != nil {
			return c.fault(n, "%s is not a finite number", v.Token.Value)
		}
		c.out.Write(text)
	case *ast.InfinityNode, *ast.NanNode:
		return c.fault(n, "%s is not a finite number", n.GetToken().Value)
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return c.fault(n, "anchors, aliases and merges are not taken: write it out")
	case *ast.TagNode:
		return c.fault(n, "tags are not taken")
	default:
		return c.fault(n, "%s is not taken", n.Type())
	}
	return nil
}

func (c *converter) text(s string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	c.out.Write(text)
	return nil
}

func (c *converter) mapping(path string, values []*ast.MappingValueNode, depth int) error {
	c.out.WriteByte('{')
	for i, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			return c.fault(v, "a key must be a name")
		}
		if i > 0 {
			c.out.WriteByte(',')
		}
		if err := c.text(key.Value); err != nil {
			return err
		}
		c.out.WriteByte(':')
		place := strings.TrimPrefix(path+"."+key.Value, ".")
		c.file.lines[place] = line(v.Key)
		if err := c.value(place, v.Value, depth+1); err != nil {
			return err
		}
	}
	c.out.WriteByte('}')
	return nil
}
