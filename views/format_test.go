package views

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
)

func in(lang Lang) context.Context {
	return With(context.Background(), Reader{Lang: lang, Now: time.Unix(1_000_000, 0)})
}

func TestNumbersAreWrittenForReaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{Int(0), "0"}, {Int(999), "999"}, {Int(1000), "1,000"}, {Int(1234567), "1,234,567"}, {Int(-12345), "−12,345"},
		{Int(math.MinInt64), "−9,223,372,036,854,775,808"},
		{Float(1.5), "1.5"}, {Float(1234.5678), "1,234.568"}, {Float(2), "2"}, {Float(math.NaN()), "—"}, {Float(math.Inf(1)), "—"}, {Float(-0.25), "−0.25"},
		{Milli(12400), "12.4"}, {Milli(1), "0.001"}, {Percent(0.353), "35.3 %"}, {Percent(math.NaN()), "—"},
		{Money(in(EN), 1_942_000_000), "¥ 1,942.00"}, {Money(in(EN), 4_999), "¥ 0.00"}, {Money(in(EN), 5_000), "¥ 0.01"}, {Money(in(EN), -1_500_000), "−¥ 1.50"},
		{Duration(in(EN), 400*time.Millisecond), "0.4 s"}, {Duration(in(EN), 0), "0 s"}, {Duration(in(EN), 59*time.Second), "59 s"},
		{Duration(in(EN), 124*time.Second), "2 m 04 s"}, {Duration(in(ZH), 124*time.Second), "2 分 04 秒"},
		{Duration(in(EN), 3*time.Hour), "3 h 00 m"}, {Duration(in(ZH), 50*time.Hour), "2 天 02 小时"}, {Duration(in(EN), -5*time.Second), "−5 s"},
		{Seconds(in(EN), 0), "—"}, {Time(time.Time{}), "—"}, {Time(time.Unix(0, 0)), "1970-01-01 00:00:00 UTC"},
		{N(in(EN), "pager.shown", 1), "1 row on this page"}, {N(in(EN), "pager.shown", 1200), "1,200 rows on this page"}, {N(in(ZH), "pager.shown", 1), "本页 1 行"},
		{T(in(EN), "no.such_key"), "⟦no.such_key⟧"}, {Word(in(EN), "status", "ACTIVE"), "active"}, {Word(in(EN), "status", "ODD"), "ODD"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestLocalTimeIsTheReadersOwn(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	ctx := With(context.Background(), Reader{Zone: zone})
	if got := LocalTime(ctx, time.Date(2026, 8, 9, 18, 40, 0, 0, time.UTC)); got != "2026-08-10 00:10:00 +05:30" {
		t.Error(got)
	}
	if got := LocalTime(context.Background(), time.Unix(1, 0)); got != "" {
		t.Errorf("an unknown zone is written as %q", got)
	}
}

func TestLocalPathLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"/tenants?q=a": "/tenants?q=a", "": "/", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/",
		"/a\r\nSet-Cookie: x=1": "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "/" + strings.Repeat("a", 3000): "/",
	} {
		if got := LocalPath(asked); got != want {
			t.Errorf("%q leads to %q, want %q", asked, got, want)
		}
	}
}

func TestRenderWritesNothingWhenAPageFails(t *testing.T) {
	t.Parallel()
	failing := templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, _ = io.WriteString(w, "half a page")
		return errors.New("broken")
	})
	w := httptest.NewRecorder()
	if err := Render(w, httptest.NewRequest(http.MethodGet, "/", nil), http.StatusOK, failing); err == nil {
		t.Fatal("no error")
	}
	if w.Body.Len() > 0 || len(w.Header()) > 0 {
		t.Errorf("the answer was begun: %v %q", w.Header(), w.Body.String())
	}
}

func TestRenderCompressesForThoseWhoAsk(t *testing.T) {
	t.Parallel()
	large := templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("<p>text</p>", 1000))
		return err
	})
	for header, want := range map[string]string{"gzip, br": "gzip", "": "", "gzip;q=0": ""} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", header)
		if err := Render(w, r, http.StatusOK, large); err != nil {
			t.Fatal(err)
		}
		if got := w.Header().Get("Content-Encoding"); got != want {
			t.Errorf("%q: encoding %q", header, got)
		}
		if want == "gzip" && w.Body.Len() > 1000 {
			t.Errorf("%d bytes", w.Body.Len())
		}
	}
}
