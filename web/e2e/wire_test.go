package e2e_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// wire carries bytes between a browser and the product, until it is cut or goes silent.
type wire struct {
	t      testing.TB
	to     string
	listen net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	state  string // "" carries, "cut" refuses, "silent" swallows
	conns  map[net.Conn]bool
	closed bool
}

func newWire(t testing.TB, to string) *wire {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, to: to, listen: l, conns: map[net.Conn]bool{}}
	w.wg.Go(w.accept)
	t.Cleanup(func() {
		w.mu.Lock()
		w.closed = true
		w.mu.Unlock()
		_ = l.Close()
		w.cut()
		w.wg.Wait()
	})
	return w
}

func (w *wire) address() string { return w.listen.Addr().String() }

func (w *wire) accept() {
	for {
		in, err := w.listen.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{Timeout: 2 * time.Second}).Dial("tcp", w.to)
		if err != nil || !w.keep(in, out) {
			_ = in.Close()
			if out != nil {
				_ = out.Close()
			}
			continue
		}
		w.wg.Go(func() { w.carry(in, out) })
		w.wg.Go(func() { w.carry(out, in) })
	}
}

// keep remembers both ends, unless the wire is cut.
func (w *wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.state == "cut" {
		return false
	}
	for _, c := range conns {
		w.conns[c] = true
	}
	return true
}

func (w *wire) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		silent := w.state == "silent"
		w.mu.Unlock()
		if silent {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (w *wire) set(state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
	if state == "cut" {
		for c := range w.conns {
			_ = c.Close()
		}
		w.conns = map[net.Conn]bool{}
	}
}

func (w *wire) cut()     { w.set("cut") }
func (w *wire) silence() { w.set("silent") }
func (w *wire) mend()    { w.set("") }
