package demo

import (
	"fmt"

	"github.com/google/uuid"
)

// namespace makes ids of the demo the same on every machine.
var namespace = uuid.MustParse("6f0a3d1e-58c4-5f3b-9a27-0c1d7e4b8a92")

// Tenant is a customer of the demo; its place in the list is its client in the trace.
type Tenant struct {
	ID    uuid.UUID
	Code  string
	Name  string
	Plan  string
	Size  Size
	Users []User
}

// User is a person in a tenant.
type User struct {
	ID         uuid.UUID
	ExternalID string
}

// Size is how large a tenant is among the sixty.
type Size string

// The sizes: 1 whale, 5 large, 14 medium, 40 small.
const (
	Whale  Size = "WHALE"
	Large  Size = "LARGE"
	Medium Size = "MEDIUM"
	Small  Size = "SMALL"
)

var usersOf = map[Size]int{Whale: 200, Large: 60, Medium: 20, Small: 5}

// The plans' codes.
const (
	planEnterprise = "enterprise"
	planBusiness   = "business"
	planPro        = "pro"
	planStandard   = "standard"
	planFree       = "free"
)

// people are the tenants' codes and names, largest first. All are invented.
var people = [60][2]string{
	{"northlight-studios", "Northlight Studios"},
	{"xinghe-yingye", "星河影业"}, {"brightreel", "Brightreel Media"}, {"yunfan-chuanmei", "云帆传媒"}, {"cascade-ads", "Cascade Ads"}, {"qinghe-duanju", "青禾短剧"},
	{"harbor-and-vine", "Harbor & Vine"}, {"lumen-post", "Lumen Post"}, {"shanhai-donghua", "山海动画"}, {"pixel-orchard", "Pixel Orchard"},
	{"tidewater-tv", "Tidewater TV"}, {"jingtu-dianshang", "鲸图电商"}, {"fable-forge", "Fable Forge"}, {"redwood-social", "Redwood Social"},
	{"lanting-jiaoyu", "兰亭教育"}, {"motionkiln", "Motionkiln"}, {"copperfield-games", "Copperfield Games"}, {"chenguang-guanggao", "晨光广告"},
	{"saffron-kitchen", "Saffron Kitchen"}, {"atlas-travel", "Atlas Travel Films"},
	{"papercrane", "Papercrane"}, {"wanxiang-gongfang", "万象工坊"}, {"ember-music", "Ember Music"}, {"kestrel-sports", "Kestrel Sports"}, {"hailan-wenhua", "海岚文化"},
	{"glasshouse", "Glasshouse Interactive"}, {"moss-and-stone", "Moss & Stone"}, {"feiyu-zhibo", "飞鱼直播"}, {"quiet-river", "Quiet River Docs"}, {"orbit-labs", "Orbit Labs"},
	{"tangerine-app", "Tangerine"}, {"baixing-lvpai", "百兴旅拍"}, {"fernway", "Fernway Homes"}, {"nimbus-edu", "Nimbus Education"}, {"oakline-realty", "Oakline Realty"},
	{"zhuyun-sheying", "竹韵摄影"}, {"violet-hour", "Violet Hour"}, {"starling-kids", "Starling Kids"}, {"cobalt-auto", "Cobalt Auto"}, {"mingri-keji", "明日科技"},
	{"honeycomb-crm", "Honeycomb"}, {"driftwood", "Driftwood Surf"}, {"sable-fashion", "Sable Fashion"}, {"luye-chazhuang", "绿野茶庄"}, {"pinwheel", "Pinwheel Toys"},
	{"granite-fitness", "Granite Fitness"}, {"meadowlark", "Meadowlark Weddings"}, {"taohua-shige", "桃花诗歌社"}, {"lantern-indie", "Lantern Indie"}, {"cinder-comics", "Cinder Comics"},
	{"juniper-blog", "Juniper"}, {"xiaoshi-manhua", "小石漫画"}, {"sundial-news", "Sundial News"}, {"velvet-podcast", "Velvet Podcast"}, {"bluebird-school", "Bluebird School"},
	{"gecko-memes", "Gecko Memes"}, {"nanshan-shequ", "南山社区"}, {"toybox-lab", "Toybox Lab"}, {"o-brien-bakery", "O'Brien's Bakery"}, {"weekend-makers", "Weekend Makers"},
}

func size(rank int) Size {
	switch {
	case rank < 1:
		return Whale
	case rank < 6:
		return Large
	case rank < 20:
		return Medium
	}
	return Small
}

func plan(rank int) string {
	switch {
	case rank < 3, rank == 6, rank == 7:
		return planEnterprise
	case rank < 6, rank == 8, rank == 9:
		return planBusiness
	case rank < 16, rank >= 20 && rank < 26:
		return planPro
	case rank < 44:
		return planStandard
	}
	return planFree
}

func tenants() []Tenant {
	list := make([]Tenant, 0, len(people))
	for rank, p := range people {
		t := Tenant{ID: uuid.NewSHA1(namespace, []byte(p[0])), Code: p[0], Name: p[1], Plan: plan(rank), Size: size(rank)}
		for n := range usersOf[t.Size] {
			external := fmt.Sprintf("user-%03d", n+1)
			t.Users = append(t.Users, User{ID: uuid.NewSHA1(t.ID, []byte(external)), ExternalID: external})
		}
		list = append(list, t)
	}
	return list
}
