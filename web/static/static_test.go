package static

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

func TestVendoredFilesAreWhatTheirSumsSay(t *testing.T) {
	t.Parallel()
	list, err := files.ReadFile("vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			t.Fatalf("line %q", lines.Text())
		}
		data, err := files.ReadFile("vendor/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has another sum", name)
		}
		known[name] = true
	}
	err = fs.WalkDir(files, "vendor", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && name != "vendor/SHA256SUMS" && !known[strings.TrimPrefix(name, "vendor/")] {
			t.Errorf("%s has no sum", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Nothing is fetched from elsewhere, and nothing in our own modules is evaluated from text.
func TestE24_OwnAssetsNeedNothingThatTheCSPForbids(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(`https?://|\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write|@import|setAttribute\("style"`)
	for _, root := range []string{"css", "js"} {
		err := fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := files.ReadFile(name)
			data = bytes.ReplaceAll(data, []byte("http://www.w3.org/2000/svg"), nil) // a name, not an address
			if found := forbidden.Find(data); found != nil {
				t.Errorf("%s has %q", name, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAssetsAreImmutableUnderTheHashOfTheirContent(t *testing.T) {
	t.Parallel()
	a, err := New()
	if err != nil {
		t.Fatal(err)
	}
	g := gin.New()
	g.GET("/static/*file", a.Serve)
	get := func(path, encoding string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	w := get(a.URL("css/parts.css"), "gzip")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/css; charset=utf-8" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	zip, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	if got := get(a.URL("css/parts.css"), "").Body.String(); got != string(plain) || len(got) == 0 {
		t.Error("the compressed file is another one")
	}
	for _, path := range []string{"/static/css/parts.css", "/static/0123456789abcdef/css/parts.css", a.URL("vendor/SHA256SUMS"), a.URL("../static.go"), a.URL("css/../css/parts.css")} {
		if w := get(path, ""); w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
