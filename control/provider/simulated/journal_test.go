package simulated

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func none(Entry) {}

func TestJournalIsReplayedAndCutsATornLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	j, err := openJournal(path, none)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 100 { // they share what is forced to disk
		all.Go(func() {
			if err := j.append(Entry{Type: EntrySubmit, Job: fmt.Sprint(i), Attempt: fmt.Sprint(i % 50)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := openJournal(path, none); err == nil || !locked(err) {
		t.Errorf("two hold the journal: %v", err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if err := j.append(Entry{}); err == nil {
		t.Error("a closed journal took an entry")
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, []byte(`{"type":"SUBMIT","job":"torn"`)...), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	j, err = openJournal(path, func(e Entry) { seen[e.Job]++ })
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 100 || seen["torn"] != 0 {
		t.Errorf("%d entries, torn %d", len(seen), seen["torn"])
	}
	if err := j.append(Entry{Type: EntrySubmit, Job: "next", Attempt: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	counts, err := SubmitsByAttempt(path)
	if err != nil || len(counts) != 51 || counts["7"] != 2 || counts["x"] != 1 {
		t.Errorf("%d attempts, %v, %v", len(counts), counts["7"], err)
	}
}

func TestJournalRefusesABrokenLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	if err := os.WriteFile(path, []byte("{\"type\":\"SUBMIT\"}\nnonsense\n{\"type\":\"SUBMIT\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openJournal(path, none); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
	if raw, _ := os.ReadFile(path); !strings.Contains(string(raw), "nonsense") {
		t.Error("the journal was cut at a broken line")
	}
}

func FuzzReadEntries(f *testing.F) {
	f.Add("{\"type\":\"SUBMIT\"}\n{")
	f.Add("\n")
	f.Fuzz(func(t *testing.T, text string) {
		whole, _ := readEntries(strings.NewReader(text), none)
		if whole < 0 || whole > int64(len(text)) || (whole > 0 && text[whole-1] != '\n') {
			t.Errorf("%q: %d", text, whole)
		}
	})
}
