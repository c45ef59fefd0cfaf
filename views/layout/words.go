package layout

import (
	"context"

	"fairlane/views"
)

func langTag(ctx context.Context) string {
	if views.Of(ctx).Lang == views.ZH {
		return "zh-CN"
	}
	return "en"
}

// langName and langSign name a language in itself, whatever the reader reads.
func langName(l views.Lang) string {
	if l == views.ZH {
		return "中文"
	}
	return "EN, English"
}

func langSign(l views.Lang) string {
	if l == views.ZH {
		return "中"
	}
	return "EN"
}

// nextTheme is what the one theme button leads to: system, light, dark, system.
func nextTheme(ctx context.Context) string {
	switch views.Of(ctx).Theme {
	case "light":
		return "dark"
	case "dark":
		return "system"
	}
	return "light"
}

func themeName(ctx context.Context, theme string) string {
	return views.T(ctx, views.Key("theme."+theme))
}

func bannerMark(kind string) string {
	if kind == "bad" {
		return "✕"
	}
	return "▲"
}
