package views

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

//go:embed catalogue/*.json
var catalogueFS embed.FS

// Key names a message of the catalogue, such as "tenant.weight". A test holds both languages to the
// same keys and every literal key in the sources to the catalogue.
type Key string

// Message is a message with its arguments, to be said in the reader's language later.
type Message struct {
	Key  Key
	Args map[string]any
}

// Say is short for a Message with arguments in pairs: Say("x", "Limit", 5).
func Say(key Key, pairs ...any) Message { return Message{Key: key, Args: pairsOf(pairs)} }

// Zero reports whether there is nothing to say.
func (m Message) Zero() bool { return m.Key == "" }

// In says the message in the reader's language.
func (m Message) In(ctx context.Context) string {
	if m.Zero() {
		return ""
	}
	return say(Of(ctx).Lang, m.Key, m.Args, nil)
}

// T says a message; pairs are its arguments: T(ctx, "shell.policy", "Version", 37). Whole numbers are
// grouped. A key that is missing shows itself in brackets, so that the crawl of all pages finds it.
func T(ctx context.Context, key Key, pairs ...any) string {
	return say(Of(ctx).Lang, key, pairsOf(pairs), nil)
}

// N says a message that depends on a count, which it knows as {{.Count}}.
func N(ctx context.Context, key Key, count int64, pairs ...any) string {
	args := pairsOf(pairs)
	if args == nil {
		args = map[string]any{}
	}
	args["Count"] = count
	return say(Of(ctx).Lang, key, args, count)
}

// Rule says a broken rule, the message rule+"."+key, and the key itself when the catalogue has none: some
// are of other rooms. A unit among the arguments becomes a word, a list of fields a text.
func Rule(ctx context.Context, key string, args map[string]any) string {
	message := Key("rule." + key)
	if !Has(message) {
		return key
	}
	args = maps.Clone(args)
	if unit, ok := args["unit"].(string); ok {
		args["unit"] = Unit(ctx, unit)
	}
	if fields, ok := args["fields"].([]string); ok {
		args["fields"] = strings.Join(fields, ", ")
	}
	return Message{Key: message, Args: args}.In(ctx)
}

// Unit says what a number counts, such as "slot_units"; weights and bare numbers have no unit.
func Unit(ctx context.Context, unit string) string {
	if unit == "" || unit == "weight" {
		return ""
	}
	return T(ctx, Key("unit."+unit))
}

// Has reports whether the catalogue has the key.
func Has(key Key) bool {
	_, err := localizers[EN].Localize(&i18n.LocalizeConfig{MessageID: string(key), PluralCount: 2, TemplateData: map[string]any{}})
	return plain[EN][key] != "" || err == nil
}

// Word says the message family+"."+value, and the value itself when the catalogue has no such word:
// for states, lanes and other names that operators may add to.
func Word(ctx context.Context, family, value string) string {
	key := Key(family + "." + strings.ToLower(value))
	if Has(key) {
		return T(ctx, key)
	}
	return value
}

var (
	localizers = map[Lang]*i18n.Localizer{}
	plain      = map[Lang]map[Key]string{EN: {}, ZH: {}} // messages without arguments, said without a template
)

func init() {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	entries, err := catalogueFS.ReadDir("catalogue")
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		file := path.Join("catalogue", entry.Name())
		if _, err := bundle.LoadMessageFileFS(catalogueFS, file); err != nil {
			panic(fmt.Errorf("catalogue %s: %w", file, err))
		}
		messages, err := readCatalogue(file)
		if err != nil {
			panic(err)
		}
		lang := langOf(entry.Name())
		for key, value := range messages {
			if text, ok := value.(string); ok && !strings.Contains(text, "{{") {
				plain[lang][Key(key)] = text
			}
		}
	}
	for _, lang := range Langs {
		localizers[lang] = i18n.NewLocalizer(bundle, string(lang))
	}
}

func readCatalogue(file string) (map[string]any, error) {
	data, err := catalogueFS.ReadFile(file)
	if err != nil {
		return nil, err
	}
	messages := map[string]any{}
	if err := json.Unmarshal(data, &messages); err != nil {
		return nil, fmt.Errorf("catalogue %s: %w", file, err)
	}
	return messages, nil
}

// langOf reads the language from a file name such as "shell.en.json".
func langOf(name string) Lang {
	parts := strings.Split(name, ".")
	return Lang(parts[len(parts)-2])
}

func say(lang Lang, key Key, args map[string]any, count any) string {
	if text, ok := plain[lang][key]; ok && count == nil {
		return text
	}
	shown := make(map[string]any, len(args))
	for name, value := range args {
		shown[name] = display(value)
	}
	text, err := localizers[lang].Localize(&i18n.LocalizeConfig{MessageID: string(key), TemplateData: shown, PluralCount: count})
	if err != nil {
		return "⟦" + string(key) + "⟧"
	}
	return text
}

// display groups the digits of whole numbers; everything else is shown as it is.
func display(value any) any {
	switch v := value.(type) {
	case int:
		return Int(int64(v))
	case int64:
		return Int(v)
	case int32:
		return Int(int64(v))
	case float64:
		return Float(v)
	case json.Number:
		return v.String()
	}
	return value
}

func pairsOf(pairs []any) map[string]any {
	if len(pairs) == 0 {
		return nil
	}
	args := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		args[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return args
}
