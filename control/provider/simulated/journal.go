package simulated

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// Entry is a line of the journal. A SUBMIT is one job that was taken on, and would have been paid for.
type Entry struct {
	Type     string    `json:"type"` // SUBMIT, CANCEL or CALLED
	At       time.Time `json:"at"`
	Profile  string    `json:"profile,omitempty"`
	Job      string    `json:"job"`
	Key      string    `json:"key,omitempty"`
	Attempt  string    `json:"attempt,omitempty"`
	Account  string    `json:"account,omitempty"`
	Model    string    `json:"model,omitempty"`
	Callback string    `json:"callback_url,omitempty"`
	Fate     *fate     `json:"fate,omitempty"`
}

// The types of entries.
const (
	EntrySubmit = "SUBMIT"
	EntryCancel = "CANCEL"
	EntryCalled = "CALLED" // the last callback was taken; not forced to disk
)

// journal appends lines. Those that must last are forced to disk before append returns; all that wait
// at the same time share one fsync.
type journal struct {
	file *os.File
	in   chan line
	quit chan struct{} // closed by close
	done chan struct{} // closed when nothing is written any more
}

type line struct {
	text []byte
	wait chan error // nil: nobody waits
}

var errJournalClosed = errors.New("journal is closed")

// openJournal takes the journal for this process alone, cuts a last line that a crash left half
// written, and hands every entry to each.
func openJournal(path string, each func(Entry)) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s belongs to a provider that runs: %w", path, err)
	}
	whole, err := readEntries(file, each)
	if err == nil {
		err = file.Truncate(whole)
	}
	if err == nil {
		_, err = file.Seek(whole, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	j := &journal{file: file, in: make(chan line, 256), quit: make(chan struct{}), done: make(chan struct{})}
	go j.run()
	return j, nil
}

// readEntries returns the length of the whole lines.
func readEntries(r io.Reader, each func(Entry)) (whole int64, err error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		text, err := buffered.ReadBytes('\n')
		if err == io.EOF {
			return whole, nil // what is left has no end: it was never answered for
		}
		if err != nil {
			return whole, err
		}
		var e Entry
		if err := json.Unmarshal(text, &e); err != nil {
			return whole, fmt.Errorf("line %d: %w", n, err)
		}
		whole += int64(len(text))
		each(e)
	}
}

// ReadJournal hands every entry of a journal to each, while a server may be writing it.
func ReadJournal(path string, each func(Entry)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := readEntries(file, each); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// SubmitsByAttempt counts the submits of a journal by attempt. More than one is a generation paid twice.
func SubmitsByAttempt(path string) (map[string]int, error) {
	counts := map[string]int{}
	err := ReadJournal(path, func(e Entry) {
		if e.Type == EntrySubmit {
			counts[e.Attempt]++
		}
	})
	return counts, err
}

func (j *journal) append(e Entry) error {
	wait := make(chan error, 1)
	if err := j.queue(e, wait); err != nil {
		return err
	}
	select {
	case err := <-wait:
		return err
	case <-j.done:
		select {
		case err := <-wait:
			return err
		default:
			return errJournalClosed
		}
	}
}

func (j *journal) queue(e Entry, wait chan error) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	select {
	case j.in <- line{append(text, '\n'), wait}:
		return nil
	case <-j.done:
		return errJournalClosed
	}
}

func (j *journal) run() {
	defer close(j.done)
	for {
		select {
		case first := <-j.in:
			j.write(j.gather([]line{first}))
		case <-j.quit:
			j.write(j.gather(nil))
			return
		}
	}
}

func (j *journal) gather(batch []line) []line {
	for len(batch) < 256 {
		select {
		case l := <-j.in:
			batch = append(batch, l)
		default:
			return batch
		}
	}
	return batch
}

func (j *journal) write(batch []line) {
	var text bytes.Buffer
	force := false
	for _, l := range batch {
		text.Write(l.text)
		force = force || l.wait != nil
	}
	_, err := j.file.Write(text.Bytes())
	if err == nil && force {
		err = j.file.Sync()
	}
	for _, l := range batch {
		if l.wait != nil {
			l.wait <- err
		}
	}
}

// close writes what is queued, once; who appends afterwards is told so.
func (j *journal) close() error {
	close(j.quit)
	<-j.done
	// A process that is about to become another program has copies of our files for a moment, which would
	// keep the lock: it is given back for all copies.
	return errors.Join(j.file.Sync(), syscall.Flock(int(j.file.Fd()), syscall.LOCK_UN), j.file.Close())
}
