package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SignatureTolerance is the age at which a signed callback is no longer taken, and how far ahead its
// clock may be.
const SignatureTolerance = 5 * time.Minute

// WebhookSecret reads a Standard Webhooks secret, "whsec_" and base64 of 24 to 64 bytes.
func WebhookSecret(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, fmt.Errorf("webhook secret: want whsec_ and base64 of 24 to 64 bytes")
	}
	return key, nil
}

// SignWebhook sets the Standard Webhooks headers for a body.
func SignWebhook(h http.Header, key []byte, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(webhookMAC(key, id, stamp, body)))
}

// VerifyWebhook checks the Standard Webhooks headers of a body that came at `at`; several keys may be
// valid at once while they are rotated. The error wraps ErrSignature.
func VerifyWebhook(h http.Header, keys [][]byte, at time.Time, body []byte) error {
	id, stamp := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil {
		return fmt.Errorf("%w: id or timestamp", ErrSignature)
	}
	if age := at.Sub(time.Unix(seconds, 0)); age > SignatureTolerance || age < -SignatureTolerance {
		return fmt.Errorf("%w: age", ErrSignature)
	}
	given := strings.Fields(h.Get("Webhook-Signature"))
	if len(given) > 16 {
		return fmt.Errorf("%w: too many", ErrSignature)
	}
	ok := false
	for _, key := range keys {
		want := webhookMAC(key, id, stamp, body)
		for _, one := range given {
			text, isV1 := strings.CutPrefix(one, "v1,")
			mac, err := base64.StdEncoding.DecodeString(text)
			if isV1 && err == nil && hmac.Equal(mac, want) {
				ok = true
			}
		}
	}
	if !ok {
		return fmt.Errorf("%w: none fits", ErrSignature)
	}
	return nil
}

func webhookMAC(key []byte, id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}
