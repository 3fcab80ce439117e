package source

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/ingest/source/uris"
)

// wholeExtensions are the extensions of files that lose their structure when they are cut into
// lines: source code, markup, and settings. Notebooks are JSON.
var wholeExtensions = extensionSet(`
	ada adb ads agda apl as asm asp aspx astro awk bas bash bat bats bzl c c++ cairo cbl cc cfg cfm cgi cjs
	cl clj cljc cljs cls cmake cmd cob coffee coq cpp cpy cr cs csh cshtml csproj css csx cts cu cue cuh cxx d
	dart dhall di diff dockerfile dpr dtd edn ejs el elm eml erb erl ex exs f f03 f08 f77 f90 f95 fish fnl for
	fs fsh fsi fsproj fsx ftl fut gd gdshader gemspec glsl go gql gradle graphql groovy gvy h h++ haml
	handlebars hbs hcl hh hlsl hpp hrl hs hta hx hxx idr inc ini inl ino ipp itcl j2 jade janet java jinja
	jinja2 jq js jsm json5 jsonc jsonnet jsp jsx kak kicad_pcb ksh kt kts lean less lfe lhs libsonnet liquid
	lisp litcoffee ll lpr lsp lua m m4 mak make mako matlab metal mjs mk ml mli mlir mll mly mm mojo move mts
	mustache nas nasm nim nimble nims nix njk nqp nsi nut odin opencl p4 pas patch php phtml pl pli plsql pm
	pod po pot pony pp prg pro prolog properties proto ps1 psd1 psm1 psql pug purs pxd pxi py pyi pyw pyx qml
	r rake raku rb rbi rbs re rego rei rkt rs rsx ru sass sbt sc scad scala scheme scm scss sed sh slim sls
	smali smk sml sol sparql spec sql ss st stan star styl sv svelte svg svh swift tcl tcsh td templ tf tfvars
	thrift thy tmpl toml tpl tpp ts tsx tu twig typ v vala vapi vb vba vbs vcl vert vh vhd vhdl vim vue vy
	wast wat webidl wgsl wl wren xaml xquery xq xsd xsl xslt yaml yang yml zig zsh
	markdown mdown mdwn mdx md mkd mkdn qmd rmd rst rest asciidoc adoc asc org textile mediawiki wiki creole
	tex latex ltx sty bib bibtex texi texinfo ltx man roff tei
	htm html xht xhtml shtml xml rss atom opml srt vtt`)

// wholeNames are the names of source code without an extension.
var wholeNames = extensionSet(`.makefile .gnumakefile .dockerfile .containerfile .jenkinsfile .vagrantfile .rakefile
	.gemfile .podfile .brewfile .procfile .justfile .snakefile .sconstruct .sconscript .cmakelists.txt .meson.build
	.build .workspace .build.bazel .tiltfile .earthfile .pkgbuild`)

// languageCodes are those of the extensions that also name the language of a corpus with a sentence
// on each line, as in train.cs.
var languageCodes = extensionSet("as cs cr cu el ml mk nas pl sc ss st sv ts vb")

func extensionSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(list) {
		set["."+strings.TrimPrefix(name, ".")] = true
	}
	return set
}

// isWholeFile reports whether a file is a document as a whole: by its name, or because it begins as
// a script or a page of HTML does.
func isWholeFile(name string, text []byte) bool {
	base := strings.ToLower(path.Base(uris.WithoutQuery(name)))
	ext := extension(name)
	if wholeNames["."+base] || wholeExtensions[ext] && !(languageCodes[ext] && areSentences(text)) {
		return true
	}
	text = bytes.TrimLeft(text, " \t\r\n")
	first, _, _ := bytes.Cut(text[:min(len(text), 1<<10)], []byte("\n"))
	first = bytes.ToLower(first)
	if bytes.HasPrefix(first, []byte("#!/")) || bytes.HasPrefix(first, []byte("#! /")) {
		return true
	}
	page := slices.ContainsFunc([]string{"<!doctype html", "<html", "<?xml"}, func(begin string) bool {
		return bytes.HasPrefix(first, []byte(begin))
	})
	return page && !bytes.Contains(first, []byte("</html>")) // else there is a page on each line
}

// endsSentence reports whether a word ends as the last one of a sentence does. Nearly all words end in ASCII,
// which needs no tables.
func endsSentence(word []byte) bool {
	switch c := word[len(word)-1]; c {
	case '.', '!', '?', ':', ';':
		return true
	case '"', '\'', ')', ']', '}', '*', '_':
	default:
		if c < utf8.RuneSelf {
			return false
		}
	}
	word = bytes.TrimRightFunc(word, func(r rune) bool {
		return r == '"' || r == '\'' || r == ')' || r == ']' || r == '*' || r == '_' ||
			unicode.In(r, unicode.Pf, unicode.Pe)
	})
	last, _ := utf8.DecodeLastRune(word)
	return unicode.Is(unicode.Sentence_Terminal, last) || last == '…' || last == ':' || last == ';'
}

// areSentences reports whether half of the lines of text end as sentences do, and as code does not.
func areSentences(text []byte) bool {
	lines, ended := 0, 0
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) == 0 {
			continue
		}
		lines++
		if last := words[len(words)-1]; endsSentence(last) && !bytes.ContainsAny(last[len(last)-1:], ":;)]*_'") {
			ended++
		}
	}
	return 2*ended > lines
}
