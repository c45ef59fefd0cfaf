package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

//go:embed css/*.css js/*.js img/*.svg vendor
var files embed.FS

// Assets holds every file in memory, plain and compressed.
type Assets struct {
	version string
	files   map[string]asset
}

type asset struct {
	kind          string
	plain, packed []byte
}

// kinds are the only types that are served; a file of another type stops the start.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// New reads, hashes and compresses the embedded files.
func New() (*Assets, error) {
	a := &Assets{files: map[string]asset{}}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		kind, served := kinds[path.Ext(name)]
		if !served {
			return nil // licences and sums travel with the library but are not asked for
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(data))
		sum.Write(data)
		packed, err := compress(data)
		if err != nil {
			return fmt.Errorf("compress %s: %w", name, err)
		}
		a.files[name] = asset{kind: kind, plain: data, packed: packed}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	a.version = hex.EncodeToString(sum.Sum(nil))[:16]
	return a, nil
}

// URL returns the address of an asset such as "css/shell.css".
func (a *Assets) URL(name string) string { return "/static/" + a.version + "/" + name }

// Serve answers GET /static/*file. Addresses with another hash are not found: they are from another build.
func (a *Assets) Serve(c *gin.Context) {
	name, ok := strings.CutPrefix(c.Param("file"), "/"+a.version+"/")
	file, known := a.files[name]
	if !ok || !known {
		c.Header("Cache-Control", "no-store")
		c.String(http.StatusNotFound, "no such asset\n")
		return
	}
	body := file.plain
	h := c.Writer.Header()
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") && len(file.packed) < len(file.plain) {
		h.Set("Content-Encoding", "gzip")
		body = file.packed
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.Status(http.StatusOK)
	if c.Request.Method != http.MethodHead {
		_, _ = c.Writer.Write(body) // the client may be gone
	}
}

func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := zip.Write(data); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
