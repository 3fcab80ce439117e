package spec

import (
	"errors"

	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/regex"
)

// Compile compiles a regular expression in Oniguruma's syntax, as Hugging Face uses it.
func Compile(text string) (normalize.Pattern, error) {
	re, err := regex.Compile(text)
	var syntax *regex.SyntaxError
	if errors.As(err, &syntax) && syntax.TooLarge {
		return normalize.Pattern{}, TooLargef("%v", err)
	}
	if err != nil {
		return normalize.Pattern{}, Unsupportedf("%v", err)
	}
	return normalize.Expression(re), nil
}
