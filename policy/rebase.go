package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Conflict is one place that two people changed from the same base to different values. A value of
// nil means that the object was not there or was removed.
type Conflict struct {
	Path               string // as in Change.Path; an object's path where one removed what the other changed
	Base, Mine, Theirs any    // string, json.Number, bool, []any, map[string]any
}

// Rebase carries the changes of mine, made from base, over to theirs, the version that was published
// meanwhile. Where both changed the same field to different values, merged holds theirs and the place is
// a conflict. merged is not validated: two changes that are right alone may be wrong together.
func Rebase(base, mine, theirs *Document) (conflicts []Conflict, merged *Document, err error) {
	var trees [3]any
	for i, d := range []*Document{base, mine, theirs} {
		if trees[i], err = tree(d); err != nil {
			return nil, nil, err
		}
	}
	m := &merger{}
	out := m.merge("", "", trees[0], trees[1], trees[2])
	data, err := json.Marshal(out)
	if err != nil {
		return nil, nil, fmt.Errorf("rebase: %w", err)
	}
	merged, err = Decode(data)
	return m.conflicts, merged, err
}

// identity names, for each list of objects, the key by which its members are known.
var identity = map[string]string{
	"lanes": "code", "pool_groups": "code", "plans": "code", "tenants": "code", "pools": "key",
	"models": "code", "accounts": "pool_group", "routing": "", "lane_minimums": "lane",
}

func tree(d *Document) (any, error) {
	data, err := Encode(d)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var t any
	if err := dec.Decode(&t); err != nil {
		return nil, fmt.Errorf("rebase: %w", err)
	}
	return t, nil
}

type merger struct{ conflicts []Conflict }

// merge returns what the three say together; nil means that it is not there.
func (m *merger) merge(path, field string, base, mine, theirs any) any {
	switch {
	case reflect.DeepEqual(mine, base), reflect.DeepEqual(mine, theirs):
		return theirs
	case reflect.DeepEqual(theirs, base):
		return mine
	}
	b, mo, to := object(base), object(mine), object(theirs)
	if mo != nil && to != nil {
		out := map[string]any{}
		for _, k := range union(sortedKeys(mo), sortedKeys(to)) {
			if v := m.merge(join(path, k), k, b[k], mo[k], to[k]); v != nil {
				out[k] = v
			}
		}
		return out
	}
	if id, isList := identity[field]; isList && list(mine) && list(theirs) {
		return m.members(path, id, members(base, id), members(mine, id), members(theirs, id))
	}
	m.conflicts = append(m.conflicts, Conflict{Path: path, Base: base, Mine: mine, Theirs: theirs})
	return theirs
}

// members merges a list of objects by what they are known by. Their order is kept unless only mine changed it.
func (m *merger) members(path, id string, base, mine, theirs keyedList) any {
	order := theirs.keys
	if slices.Equal(common(theirs.keys, base), common(base.keys, theirs)) {
		order = mine.keys
	} else if mineOrder := common(mine.keys, theirs); !slices.Equal(mineOrder, common(theirs.keys, mine)) && !slices.Equal(common(mine.keys, base), common(base.keys, mine)) {
		m.conflicts = append(m.conflicts, Conflict{Path: path, Base: anys(base.keys), Mine: anys(mine.keys), Theirs: anys(theirs.keys)})
	}
	out := []any{}
	for _, k := range union(order, union(theirs.keys, mine.keys)) {
		if v := m.merge(path+"["+k+"]", "", base.of[k], mine.of[k], theirs.of[k]); v != nil {
			out = append(out, v)
		}
	}
	return out
}

type keyedList struct {
	keys []string
	of   map[string]any
}

func members(v any, id string) keyedList {
	l := keyedList{of: map[string]any{}}
	elements, _ := v.([]any)
	for _, e := range elements {
		o := object(e)
		k := fmt.Sprint(o[id])
		if id == "" {
			k = fmt.Sprint(o["mark"]) + "/" + fmt.Sprint(o["resource_class"])
		}
		if _, taken := l.of[k]; !taken {
			l.keys = append(l.keys, k)
			l.of[k] = e
		}
	}
	return l
}

// common lists those of keys that the other list has too.
func common(keys []string, with keyedList) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { _, ok := with.of[k]; return !ok })
}

func anys(keys []string) any {
	out := make([]any, len(keys))
	for i, k := range keys {
		out[i] = k
	}
	return out
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func list(v any) bool {
	_, ok := v.([]any)
	return ok || v == nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
