package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"fairlane/policy/access"
)

var assetOf = regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"`)

// A page with everything that it loads stays under 150 KB compressed, all of it from this binary.
func TestPagesAreSmallAndLoadNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Admin)
	b.headers["Accept-Encoding"] = "gzip"
	plain := *b
	plain.headers = map[string]string{}
	largest := 0
	for _, target := range []string{"/tenants/acme", "/lanes/STANDARD", "/pools/platform", "/switches", "/scheduling", "/versions", "/versions/1", "/audit", "/audit/1"} {
		bytes := len(b.get(target).want(t, http.StatusOK).body)
		body := plain.get(target).body
		if strings.Contains(body, "http://") || strings.Contains(body, "https://") || strings.Contains(body, `src="//`) {
			t.Errorf("%s loads something from elsewhere", target)
		}
		for _, asset := range assetOf.FindAllStringSubmatch(body, -1) {
			a := b.get(asset[1])
			if a.status != http.StatusOK {
				t.Errorf("%s: %s is %d", target, asset[1], a.status)
			}
			bytes += len(a.body)
		}
		largest = max(largest, bytes)
		if bytes > 150_000 {
			t.Errorf("%s loads %d bytes", target, bytes)
		}
	}
	t.Logf("the largest page loads %d bytes compressed", largest)
}
