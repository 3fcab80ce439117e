// Package option is what people choose about a build: the options as fields with their defaults, and a
// table with a row for each, from which flags, help, completion, manual pages and Python's types are
// made. Settings are those on which the bytes of a dataset depend.
//
// Options enter a build once, through WithDefaults and Validate, and are not changed by it.
package option
