package policyfile

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// names are the keys by which the policy's rules name an entry of a list, the first that is there.
var names = []string{"code", "key", "pool_group", "lane"}

// alias notes the name that rules use for an entry: lanes[STANDARD] for lanes[2].
func (c *converter) alias(list, place string, item ast.Node) {
	var values []*ast.MappingValueNode
	switch v := item.(type) {
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{v}
	}
	for _, name := range names {
		for _, v := range values {
			key, isName := v.Key.(*ast.StringNode)
			text, isText := v.Value.(*ast.StringNode)
			if isName && isText && key.Value == name {
				c.file.places[list+"["+text.Value+"]"] = place
				return
			}
		}
	}
}

// numbered turns the names of entries in a path into their numbers, from left to right.
func (f *File) numbered(path string) string {
	for from := 0; ; {
		end := strings.IndexByte(path[from:], ']')
		if end < 0 {
			return path
		}
		from += end + 1
		if place, ok := f.places[path[:from]]; ok {
			path = place + path[from:]
			from = len(place)
		}
	}
}
