package e2e_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"fairlane/store/storetest"
)

func viewport(width, height int64) chromedp.Action[chromedp.Void] {
	return chromedp.EmulateViewport(width, height)
}

// TestConsole looks at a platform in full work, which nobody changes: its parts share it.
func TestConsole(t *testing.T) {
	t.Parallel()
	p := start(t, storetest.New(t), t.TempDir(), "--speed", "8")
	p.wait(t, "tasks that have ended", time.Minute, `SELECT count(*) >= 40 FROM generation_task WHERE state = 'SUCCEEDED'`)
	t.Run("E11_EveryPageIsCrawled", func(t *testing.T) { t.Parallel(); testPagesAreAll(t, p.in(t)) })
	t.Run("E10_KeyboardReachesEverything", func(t *testing.T) { t.Parallel(); testKeyboard(t, p.in(t)) })
	t.Run("E11_LanguageSwitchKeepsTheForm", func(t *testing.T) { t.Parallel(); testLanguageSwitch(t, p.in(t)) })
	t.Run("E23_ChartsHaveTablesAndFollow", func(t *testing.T) { t.Parallel(); testChartsFollow(t, p.in(t)) })
	t.Run("E25_TaskPageFollowsTheTask", func(t *testing.T) { t.Parallel(); testTaskFollows(t, p.in(t)) })
	t.Run("E23_PauseStopsTheDOM", func(t *testing.T) { t.Parallel(); testPause(t, p.in(t)) })
	for _, lang := range languages {
		t.Run("E01_ReasonIsNeededAndSurvives/"+lang, func(t *testing.T) { t.Parallel(); testReasonIsNeededAndSurvives(t, p.in(t), lang) })
		t.Run("E02_TwoEditsAreTwoRows/"+lang, func(t *testing.T) { t.Parallel(); testTwoEditsAreTwoRows(t, p.in(t), lang) })
		for _, theme := range []string{"light", "dark"} {
			t.Run("E11_E12_E24_Pages/"+lang+"-"+theme, func(t *testing.T) {
				t.Parallel()
				// Both languages and both themes are looked at closely, if not each pair of them.
				testPages(t, p.in(t), lang, theme, (lang == "en") == (theme == "light"))
			})
		}
	}
	for role, lang := range map[string]string{"viewer": "en", "auditor": "zh"} {
		t.Run("E09_E18_ReadersChangeNothing/"+role, func(t *testing.T) { t.Parallel(); testReadersChangeNothing(t, p.in(t), role, lang) })
	}
}
