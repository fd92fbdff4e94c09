#!/bin/sh
# The plugin of this repository as Claude Code itself judges it. Outside CI: it fetches the client from npm.
# A home of its own, no login. CLAUDE names a client that is there already; VERSION another one than this.
set -eu
cd "$(dirname "$0")/../.."
HOME=$(mktemp -d)
export HOME
trap 'rm -rf "$HOME"' EXIT
claude=${CLAUDE:-}
if [ -z "$claude" ]; then
	npm install --silent --prefix "$HOME/client" "@anthropic-ai/claude-code@${VERSION:-2.1.197}"
	(cd "$HOME/client/node_modules/@anthropic-ai/claude-code" && node install.cjs)
	claude=$HOME/client/node_modules/.bin/claude
fi
"$claude" --version
"$claude" plugin validate --strict .
"$claude" plugin validate --strict plugin
