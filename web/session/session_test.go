package session

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPasswordsAreHashedAndVerified(t *testing.T) {
	t.Parallel()
	hash, err := HashPassword(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	again, err := HashPassword(t.Context(), "correct horse")
	if err != nil || again == hash || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("%s %s %v", hash, again, err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horse ": false, "": false, "Correct horse": false, "正确": false} {
		if got, err := verify(t.Context(), password, hash); err != nil || got != want {
			t.Errorf("%q: %v %v", password, got, err)
		}
	}
	if ok, err := verify(t.Context(), "", nobody); err != nil || ok {
		t.Errorf("the password of nobody: %v %v", ok, err)
	}
	for _, password := range []string{"short", strings.Repeat("长", MaxPassword+1)} {
		if _, err := HashPassword(t.Context(), password); err == nil {
			t.Errorf("%d characters are taken", len([]rune(password)))
		}
	}
}

func TestBrokenHashesAreErrorsNotMatches(t *testing.T) {
	t.Parallel()
	for _, hash := range []string{"", "plain", "$2a$10$abc", "$argon2i$v=19$m=1,t=1,p=1$AAAA$AAAA", "$argon2id$v=18$m=19456,t=2,p=1$AAAA$AAAA",
		"$argon2id$v=19$m=99999999,t=2,p=1$AAAA$AAAA", "$argon2id$v=19$m=19456,t=0,p=1$AAAA$AAAA", "$argon2id$v=19$m=19456,t=2,p=0$AAAA$AAAA",
		"$argon2id$v=19$m=19456,t=2,p=1$!!$AAAA", "$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA", "$argon2id$v=19$m=19456,t=2,p=1$AAAA$"} {
		if ok, err := verify(t.Context(), "", hash); ok || err == nil {
			t.Errorf("%q: %v %v", hash, ok, err)
		}
	}
}

func TestHashingWaitsForItsTurnAndGivesUpWithTheRequest(t *testing.T) {
	for range atOnce {
		hashing <- struct{}{}
	}
	defer func() {
		for range atOnce {
			<-hashing
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := verify(ctx, "x", nobody); err == nil {
		t.Error("hashed beyond the bound")
	}
}

func TestTriesAreBoundedAndComeBack(t *testing.T) {
	t.Parallel()
	list, now := newTries(), time.Unix(1_000, 0)
	for i := range maxTries {
		if _, ok := list.take("a", now.Add(time.Duration(i)*time.Second)); !ok {
			t.Fatalf("try %d is refused", i)
		}
	}
	at := now.Add(time.Minute)
	if wait, ok := list.take("a", at); ok || wait != 4*time.Minute {
		t.Errorf("the eleventh: %v, wait %v", ok, wait)
	}
	if _, ok := list.take("b", at); !ok {
		t.Error("another key is refused")
	}
	if _, ok := list.take("a", now.Add(tryWindow)); !ok {
		t.Error("the oldest try still counts after the window")
	}
	if _, ok := list.take("a", now.Add(tryWindow)); ok {
		t.Error("one that ran out made room for two")
	}
	list.giveBack("a")
	if _, ok := list.take("a", now.Add(tryWindow)); !ok {
		t.Error("what was given back still counts")
	}
	list.forget("a")
	if _, ok := list.take("a", now); !ok || len(list.keys["a"]) != 1 {
		t.Error("a forgotten key still counts")
	}
}

func TestTriesKeepABoundedNumberOfKeysAndTheWorstOnes(t *testing.T) {
	t.Parallel()
	list, now := newTries(), time.Unix(1_000, 0)
	for range maxTries {
		list.take("attacker", now)
	}
	for i := range maxKeys + 50 {
		list.take("other-"+strconv.Itoa(i), now)
	}
	if len(list.keys) > maxKeys {
		t.Errorf("%d keys", len(list.keys))
	}
	if _, ok := list.take("attacker", now); ok {
		t.Error("a flood of other keys made the tries of one forgotten")
	}
}

func TestTriesOfManyAtOnceDoNotSlipThrough(t *testing.T) {
	t.Parallel()
	list, now := newTries(), time.Unix(1_000, 0)
	var wait sync.WaitGroup
	var mu sync.Mutex
	let := 0
	for range 200 {
		wait.Go(func() {
			if _, ok := list.take("a", now); ok {
				mu.Lock()
				let++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if let != maxTries {
		t.Errorf("%d were let through", let)
	}
}

func TestSessionsAreExtendedOncePerPeriod(t *testing.T) {
	t.Parallel()
	times, now := newTokenTimes(), time.Unix(1_000, 0)
	if !times.due("a", now, time.Minute) || times.due("a", now.Add(59*time.Second), time.Minute) || !times.due("a", now.Add(time.Minute), time.Minute) || !times.due("b", now, time.Minute) {
		t.Error("not once a minute")
	}
	for i := range maxKeys + 10 {
		times.due(strconv.Itoa(i), now, time.Minute)
	}
	if len(times.last) > maxKeys {
		t.Errorf("%d tokens are remembered", len(times.last))
	}
}

func TestWrongSettingsStopTheStart(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("nothing that is needed was missed")
	}
}
