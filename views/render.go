package views

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/a-h/templ"
)

const compressFrom = 1 << 10

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Render renders the page into a buffer with the request's own context, and only then writes status,
// headers and body: a page that fails to render leaves the response untouched. Bodies are compressed
// for clients that ask for it. Pages are never stored by caches, since they show current rights.
func Render(w http.ResponseWriter, r *http.Request, status int, page templ.Component) error {
	body := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(body)
	body.Reset()
	ctx := templ.WithNonce(r.Context(), Of(r.Context()).Nonce)
	if err := page.Render(ctx, body); err != nil {
		return fmt.Errorf("render %s: %w", r.URL.Path, err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept-Encoding, Cookie, Accept-Language, HX-Request")
	out := body
	if body.Len() >= compressFrom && AcceptsGzip(r) {
		packed := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(packed)
		packed.Reset()
		zip, _ := gzip.NewWriterLevel(packed, gzip.BestSpeed) // the level is a constant in range
		if _, err := zip.Write(body.Bytes()); err != nil {
			return fmt.Errorf("compress %s: %w", r.URL.Path, err)
		}
		if err := zip.Close(); err != nil {
			return fmt.Errorf("compress %s: %w", r.URL.Path, err)
		}
		h.Set("Content-Encoding", "gzip")
		out = packed
	}
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, _ = w.Write(out.Bytes()) // the client may be gone; there is nobody left to tell
	return nil
}

// AcceptsGzip reports whether the client takes gzip.
func AcceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimSpace(q) != "q=0" {
			return true
		}
	}
	return false
}
