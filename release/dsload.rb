# Installs the program of a release. make release fills in the version and the checksums.
class Dsload < Formula
  desc "SUMMARY"
  homepage "https://github.com/dsload/dsload"
  version "VERSION"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/dsload/dsload/releases/download/vVERSION/dsload-VERSION-darwin-arm64.tar.gz"
      sha256 "SHA256-darwin-arm64"
    end
    on_intel do
      url "https://github.com/dsload/dsload/releases/download/vVERSION/dsload-VERSION-darwin-amd64.tar.gz"
      sha256 "SHA256-darwin-amd64"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/dsload/dsload/releases/download/vVERSION/dsload-VERSION-linux-arm64.tar.gz"
      sha256 "SHA256-linux-arm64"
    end
    on_intel do
      url "https://github.com/dsload/dsload/releases/download/vVERSION/dsload-VERSION-linux-amd64.tar.gz"
      sha256 "SHA256-linux-amd64"
    end
  end

  def install
    bin.install "dsload"
    generate_completions_from_executable(bin/"dsload", "completion")
    system bin/"dsload", "help", "--man", "man"
    man1.install Dir["man/*.1"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dsload version")
    system bin/"dsload", "build", "--max-examples", "100", "--out", "data"
    system bin/"dsload", "verify", "data"
  end
end
