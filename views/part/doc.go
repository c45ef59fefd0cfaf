// Package part holds the pieces that pages are made of: cards, badges, fields with their error beside
// them, pagers, capacity and share bars, slot grids, diff tables. They take plain values and know no page.
package part
