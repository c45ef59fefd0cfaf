package web

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/text/language"

	"fairlane/policy/access"
	"fairlane/views"
)

// The cookies of a reader's choices. They carry no rights.
const (
	cookieLang  = "fl_lang"
	cookieTheme = "fl_theme"
	cookieZone  = "fl_zone"
)

// headers sets what protects every answer. Nothing inline runs, nothing is framed, nothing comes from
// elsewhere; the nonce serves the few elements that need one.
func (e *engine) headers(c *gin.Context) {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails; it crashes the process instead
	nonce := base64.RawURLEncoding.EncodeToString(raw[:])
	c.Request = c.Request.WithContext(views.With(c.Request.Context(), views.Reader{Nonce: nonce}))
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self' 'nonce-"+nonce+"'; style-src 'self' 'nonce-"+nonce+
		"'; img-src 'self'; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	c.Next()
}

// reader finds out how to speak to whoever asks: stored choice first, then what the browser says.
func (e *engine) reader(c *gin.Context) {
	e.setReader(c, choiceOf(c.Request))
	c.Next()
}

type choice struct {
	lang  views.Lang
	theme string
	zone  *time.Location
}

func (e *engine) setReader(c *gin.Context, ch choice) {
	ctx := c.Request.Context()
	c.Request = c.Request.WithContext(views.With(ctx, views.Reader{
		Lang: ch.lang, Theme: ch.theme, Zone: ch.zone,
		Nonce: views.Of(ctx).Nonce, RequestID: access.ActorOf(ctx).RequestID,
		Path: c.Request.URL.RequestURI(), Now: e.cfg.Now(), Currency: e.cfg.Currency, Asset: e.cfg.Asset,
	}))
}

func choiceOf(r *http.Request) choice {
	ch := choice{lang: langFrom(r.Header.Get("Accept-Language"))}
	if lang, ok := validLang(cookie(r, cookieLang)); ok {
		ch.lang = lang
	}
	if theme := cookie(r, cookieTheme); theme == "light" || theme == "dark" {
		ch.theme = theme
	}
	// "Local" would name the server's zone, and a path could name any file of the zone database's folder.
	if name := cookie(r, cookieZone); name != "" && name != "Local" && len(name) <= 64 && !strings.Contains(name, "..") {
		if zone, err := time.LoadLocation(name); err == nil {
			ch.zone = zone
		}
	}
	return ch
}

func cookie(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	value, err := url.QueryUnescape(c.Value)
	if err != nil {
		return ""
	}
	return value
}

func validLang(value string) (views.Lang, bool) {
	switch lang := views.Lang(value); lang {
	case views.EN, views.ZH:
		return lang, true
	}
	return "", false
}

var matcher = language.NewMatcher([]language.Tag{language.English, language.Chinese})

func langFrom(header string) views.Lang {
	if len(header) > 200 { // a header made to be slow to read
		return views.EN
	}
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return views.EN
	}
	if _, index, confidence := matcher.Match(tags...); index == 1 && confidence > language.No {
		return views.ZH
	}
	return views.EN
}

// preference applies a choice of language or theme that came with a form, and keeps it.
func (e *engine) preference(c *gin.Context) {
	ch, before := choiceOf(c.Request), choiceOf(c.Request)
	var lang, theme *string
	if l, ok := validLang(c.Request.PostForm.Get("set_lang")); ok {
		ch.lang = l
		lang = (*string)(&ch.lang)
		e.keep(c, cookieLang, *lang)
	}
	switch asked := c.Request.PostForm.Get("set_theme"); asked {
	case "light", "dark", "system":
		ch.theme = strings.TrimPrefix(asked, "system")
		theme = &ch.theme
		e.keep(c, cookieTheme, *theme)
	}
	if lang == nil && theme == nil {
		return
	}
	e.setReader(c, ch)
	subject, signedIn := access.SubjectOf(c.Request.Context())
	if !signedIn || e.cfg.Preference == nil || ch == before {
		return
	}
	if err := e.cfg.Preference.SavePreference(c.Request.Context(), subject.Operator, lang, theme); err != nil {
		// The cookie has it; the page must not fail over it.
		e.cfg.Log.WarnContext(c.Request.Context(), "preference not kept", "error", err)
	}
}

func (e *engine) keep(c *gin.Context, name, value string) {
	http.SetCookie(c.Writer, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: 365 * 24 * 3600,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: e.cfg.Secure || c.Request.TLS != nil,
	})
}
