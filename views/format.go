package views

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // readers' zones must be known on machines without a zone database
)

// Int writes a whole number with grouped digits: 1,284.
func Int(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "−", digits[1:]
	}
	return sign + group(digits)
}

// Float writes a number with at most three places and grouped digits.
func Float(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "—"
	}
	text := strconv.FormatFloat(math.Abs(x), 'f', 3, 64)
	whole, part, _ := strings.Cut(text, ".")
	out := group(whole)
	if part = strings.TrimRight(part, "0"); part != "" {
		out += "." + part
	}
	if x < 0 {
		out = "−" + out
	}
	return out
}

// Milli writes milli-units as units with at most three places: 12400 is 12.4.
func Milli(n int64) string { return Float(float64(n) / 1000) }

// Percent writes a part of 1 with one place: 0.353 is "35.3 %".
func Percent(part float64) string {
	if math.IsNaN(part) || math.IsInf(part, 0) {
		return "—"
	}
	return strconv.FormatFloat(part*100, 'f', 1, 64) + " %"
}

// Money writes micro-units of the platform's currency with its sign and two places.
func Money(ctx context.Context, micro int64) string {
	sign := Of(ctx).Currency
	if sign == "" {
		sign = "¥"
	}
	minus := ""
	cents := (abs(micro) + 5_000) / 10_000
	if micro < 0 {
		minus = "−"
	}
	return minus + sign + " " + group(strconv.FormatUint(cents/100, 10)) + "." + pad(int64(cents%100))
}

// Duration writes a length of time in its two largest units: "2 m 04 s", "2 分 04 秒".
func Duration(ctx context.Context, d time.Duration) string {
	names := [4]string{" d", " h", " m", " s"}
	if Of(ctx).Lang == ZH {
		names = [4]string{" 天", " 小时", " 分", " 秒"}
	}
	if d < 0 {
		return "−" + Duration(ctx, -d)
	}
	switch s := int64(d / time.Second); {
	case d < 10*time.Second && d%time.Second != 0:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + names[3]
	case s < 60:
		return Int(s) + names[3]
	case s < 3600:
		return Int(s/60) + names[2] + " " + pad(s%60) + names[3]
	case s < 86400:
		return Int(s/3600) + names[1] + " " + pad(s/60%60) + names[2]
	default:
		return Int(s/86400) + names[0] + " " + pad(s/3600%24) + names[1]
	}
}

// Seconds is Duration for a number of seconds; 0 is a dash.
func Seconds(ctx context.Context, s int64) string {
	if s == 0 {
		return "—"
	}
	return Duration(ctx, time.Duration(s)*time.Second)
}

// Time writes an instant in UTC: "2026-11-30 14:02:08 UTC".
func Time(t time.Time) string {
	if t.IsZero() {
		return "—"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// LocalTime writes an instant in the reader's own zone; "" when the zone is unknown or is UTC just then.
func LocalTime(ctx context.Context, t time.Time) string {
	zone := Of(ctx).Zone
	if zone == nil || t.IsZero() {
		return ""
	}
	local := t.In(zone)
	if _, offset := local.Zone(); offset == 0 {
		return ""
	}
	return local.Format("2006-01-02 15:04:05 -07:00")
}

func group(digits string) string {
	first := len(digits) % 3
	if len(digits) <= 3 {
		return digits
	}
	var b strings.Builder
	b.WriteString(digits[:first])
	for i := first; i < len(digits); i += 3 {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(digits[i : i+3])
	}
	return b.String()
}

func pad(n int64) string {
	if n < 10 {
		return "0" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

func abs(n int64) uint64 {
	if n < 0 {
		return uint64(-(n + 1)) + 1
	}
	return uint64(n)
}
