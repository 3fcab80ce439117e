package jsonx

import (
	"math"
	"testing"
)

func TestParseFloat(t *testing.T) {
	// The third is a score whose nearest float64 differs from what one division gives.
	for text, want := range map[string]float64{
		"0": 0, "-1.5": -1.5, "-0.1": -0.1, "1e3": 1000, "12E-2": 0.12,
		"123456789012345678901234567890": 123456789012345678900000000000,
		"1e-400":                         0, "-3.25e+2": -325, "0.0000000000000000000000000001": 1e-28,
	} {
		if got, ok := ParseFloat([]byte(text)); !ok || math.Abs(got-want) > math.Abs(want)*1e-15 {
			t.Errorf("ParseFloat(%s) = %v, %v; want about %v", text, got, ok, want)
		}
	}
	// 8.988465674311579e300 / 10^... : one rounding of the digits, one of the division.
	if got, _ := ParseFloat([]byte("-9.417496681213379")); got != -(float64(9417496681213379) / 1e15) {
		t.Errorf("got %v", got)
	}
	for _, text := range []string{"", "-", "01", "1.", ".5", "1e", "1e999", "NaN", "1x", "--1", "1e5x"} {
		s, err := NewScanner([]byte(text))
		var got float64
		if err == nil {
			got, err = s.Float()
		}
		if err == nil {
			err = s.End()
		}
		if err == nil {
			t.Errorf("%q is %v without error", text, got)
		}
	}
}
