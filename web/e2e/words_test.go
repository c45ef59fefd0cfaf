package e2e_test

// word is a text as both languages have it.
type word struct{ en, zh string }

func (w word) in(lang string) string {
	if lang == "zh" {
		return w.zh
	}
	return w.en
}

// What the tests look for is written out here: they must not pass because both sides read the same file.
var (
	changes1        = word{"1 change", "1 处变更"}
	changes2        = word{"2 changes", "2 处变更"}
	reasonNeeded    = word{"Please say why", "请说明原因"}
	notWhole        = word{"“1e9” is not a whole number", "“1e9”不是整数"}
	publishAs       = word{"Publish as version 3", "发布为版本 3"}
	conflictTitle   = word{"Version 3 was published while you worked on 2", "您在编辑版本 2 时，版本 3 已发布"}
	changedByBoth   = word{"changed by both", "双方都改了"}
	publishedAction = word{"published a policy version", "发布策略版本"}
	admissionClosed = word{"Admission is closed", "准入已关闭"}
	disconnected    = word{"disconnected since", "起断开"}
)

var languages = []string{"en", "zh"}
