package estimate

import (
	"math"
	"strconv"
	"strings"

	"fairlane/policy"
)

// resolutionPower is how work grows with pixels: less than in proportion, since part of a job
// (queueing at the provider, encoding, moderation) does not grow. A prior until actuals are learnt.
const resolutionPower = 0.7

// Named sizes in pixels of a 16:9 frame.
var namedPixels = map[string]float64{
	"360p": 640 * 360, "480p": 854 * 480, "540p": 960 * 540, "720p": 1280 * 720, "768p": 1366 * 768,
	"1080p": 1920 * 1080, "1440p": 2560 * 1440, "2k": 2560 * 1440, "2160p": 3840 * 2160, "4k": 3840 * 2160,
}

// lengthScale is 1 for the default clip of the model, and in proportion to the length otherwise.
func lengthScale(m *policy.Model, seconds int64) float64 {
	if len(m.Seconds) == 0 || seconds == m.Seconds[0] {
		return 1
	}
	return float64(seconds) / float64(m.Seconds[0])
}

// resolutionScale is 1 for the model's default and for names whose pixels are not known.
func resolutionScale(m *policy.Model, resolution string) float64 {
	if len(m.Resolutions) == 0 || resolution == m.Resolutions[0] {
		return 1
	}
	asked, ok := pixels(resolution)
	base, known := pixels(m.Resolutions[0])
	if !ok || !known {
		return 1
	}
	return math.Pow(asked/base, resolutionPower)
}

// pixels reads a name such as "720p", "4K" or "1280x720".
func pixels(resolution string) (float64, bool) {
	name := strings.ToLower(resolution)
	if p, ok := namedPixels[name]; ok {
		return p, true
	}
	w, h, ok := strings.Cut(name, "x")
	if !ok {
		return 0, false
	}
	width, errW := strconv.ParseUint(w, 10, 16)
	height, errH := strconv.ParseUint(h, 10, 16)
	if errW != nil || errH != nil || width == 0 || height == 0 {
		return 0, false
	}
	return float64(width) * float64(height), true
}
