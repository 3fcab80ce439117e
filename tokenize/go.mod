module github.com/dsload/dsload/tokenize

go 1.26.0

require (
	github.com/klauspost/compress v1.20.3
	github.com/pkoukk/tiktoken-go-loader v0.0.2
	golang.org/x/text v0.44.0
)
