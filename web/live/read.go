package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"fairlane/control/monitor"
)

// What a client may send: little, and seldom.
const (
	maxMessage   = 4096 // bytes
	maxTopics    = 16
	compressFrom = 1024 // bytes; smaller frames cost more to pack than to send
)

type message struct {
	Hello  *hello          `json:"hello"`
	Resync []monitor.Topic `json:"resync"`
}

type hello struct {
	Topics []struct {
		Topic monitor.Topic `json:"topic"`
		Epoch string        `json:"epoch"`
		Seq   int64         `json:"seq"`
	} `json:"topics"`
}

var errUnknownMessage = errors.New("unknown message")

// read takes messages until the connection ends.
func (s *socket) read() {
	s.conn.SetReadLimit(maxMessage)
	alive := func() { _ = s.conn.SetReadDeadline(s.deadline(3 * s.hub.cfg.PingEvery)) }
	alive()
	s.conn.SetPongHandler(func(string) error { alive(); return nil })
	budget := rate.NewLimiter(2, 20)
	for {
		kind, body, err := s.conn.NextReader()
		if err != nil {
			s.close(-1, "") // the client is gone; there is nobody to tell a code
			return
		}
		// The limit of the connection counts packed bytes; a few of them can unpack to megabytes.
		text, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
		if err != nil {
			s.close(-1, "")
			return
		}
		if len(text) > maxMessage {
			s.close(websocket.CloseMessageTooBig, "message too big")
			return
		}
		alive()
		if !budget.AllowN(s.hub.cfg.Now(), 1) {
			s.close(websocket.ClosePolicyViolation, "too many messages")
			return
		}
		m, err := parse(kind, text)
		if err != nil {
			s.close(websocket.ClosePolicyViolation, errUnknownMessage.Error())
			return
		}
		if code, reason := s.hub.take(s, m); code != 0 {
			s.close(code, reason)
			return
		}
	}
}

// parse accepts exactly what the package's page says.
func parse(kind int, text []byte) (message, error) {
	var m message
	if kind != websocket.TextMessage {
		return m, errUnknownMessage
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, errUnknownMessage
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return m, errUnknownMessage
	}
	if (m.Hello == nil) == (len(m.Resync) == 0) || len(m.Resync) > maxTopics {
		return m, errUnknownMessage
	}
	if m.Hello == nil {
		return m, nil
	}
	if len(m.Hello.Topics) == 0 || len(m.Hello.Topics) > maxTopics {
		return m, errUnknownMessage
	}
	for _, t := range m.Hello.Topics {
		if t.Seq < 0 || len(t.Epoch) > 64 || len(t.Topic) > 64 {
			return m, errUnknownMessage
		}
	}
	return m, nil
}
