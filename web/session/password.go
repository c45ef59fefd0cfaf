package session

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"fairlane/control"
)

// Cost of a hash: OWASP's second choice for argon2id. Two at once take 38 MiB.
const (
	argonMemory  = 19 * 1024 // KiB
	argonTime    = 2
	argonThreads = 1
	argonKey     = 32
	argonSalt    = 16
	atOnce       = 2

	// MinPassword and MaxPassword bound the length of a password in characters.
	MinPassword = 8
	MaxPassword = 200
)

// hashing bounds how many hashes are computed at once: each takes its memory whoever asks.
var hashing = make(chan struct{}, atOnce)

// HashPassword returns the argon2id hash of a password in PHC form.
func HashPassword(ctx context.Context, password string) (string, error) {
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword {
		return "", control.Invalid([]control.FieldError{{Field: "password", Key: "length", Args: map[string]any{"min": MinPassword, "max": MaxPassword}}})
	}
	salt := make([]byte, argonSalt)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	key, err := derive(ctx, password, salt, argonMemory, argonTime, argonThreads)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key)), nil
}

// verify reports whether the password is that of the hash.
func verify(ctx context.Context, password, hash string) (bool, error) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, errors.New("stored password hash is not argon2id")
	}
	var version int
	var memory, passes uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return false, errors.New("stored password hash has another version")
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &threads); err != nil ||
		memory > 1<<20 || passes < 1 || passes > 16 || threads < 1 || threads > 16 {
		return false, errors.New("stored password hash has parameters out of range")
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("stored password hash: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(want) != argonKey {
		return false, errors.New("stored password hash has a key of another length")
	}
	got, err := derive(ctx, password, salt, memory, passes, threads)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

func derive(ctx context.Context, password string, salt []byte, memory, passes uint32, threads uint8) ([]byte, error) {
	select {
	case hashing <- struct{}{}:
		defer func() { <-hashing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey([]byte(password), salt, passes, memory, threads, argonKey), nil
}

// nobody is what the password of an unknown login is compared with, so that both take the same time.
const nobody = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
