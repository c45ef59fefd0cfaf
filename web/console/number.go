package console

import (
	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/policy"
)

// cursor reads ?before=: the sequence or version above which the page ends; 0 for the first page.
func cursor(c *gin.Context) (int64, error) {
	text, given := c.GetQuery("before")
	if !given {
		return 0, nil
	}
	n, fault := policy.ParseInt("before", text)
	if fault != nil {
		return 0, control.Invalid([]control.FieldError{ruleOf(*fault)})
	}
	return n, nil
}

// numbered reads the number of a version or event out of the address; what is none does not exist.
func numbered(text string) (int64, error) {
	n, fault := policy.ParseInt("", text)
	if fault != nil || n < 1 {
		return 0, control.Errorf(control.CodeNotFound, "there is no such number")
	}
	return n, nil
}

// ruleOf gives a broken rule the key under which the catalogue has it.
func ruleOf(f control.FieldError) control.FieldError {
	f.Key = "rule." + f.Key
	return f
}
