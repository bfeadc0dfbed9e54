#!/bin/sh
# Makes the secrets of docker-compose.yml that are not there yet, each in a file of its own:
#
#   infra/make-secrets.sh [folder]        default: $SECRETS_DIR, else ./secrets
#
# Only the owner of the folder may enter it. The files themselves are readable, since each container reads its own with
# a user of its own. Keep a copy: without key_secret no API key is valid, without secrets_key no credential can be read.
set -eu

folder=${1:-${SECRETS_DIR:-$(dirname "$0")/../secrets}}
umask 077
mkdir -p "$folder"
chmod 700 "$folder"

random() { openssl rand "-$2" "$1" | tr -d '\n='; }

# put <name> <value>: a file that is there, also an empty one, is kept.
put() {
  [ -e "$folder/$1" ] && return
  printf '%s\n' "$2" >"$folder/.$1.new"
  chmod 444 "$folder/.$1.new"
  mv "$folder/.$1.new" "$folder/$1"
  echo "made $folder/$1"
}

put key_secret "$(random 32 hex)"
put secrets_key "$(random 32 base64 | tr '+/' '-_')"
put console_secret "$(random 32 hex)"
put ops_token "$(random 24 hex)"
put redis_password "$(random 24 hex)"
put database_password "$(random 24 hex)"
put postgres_superuser_password "$(random 24 hex)"
put grafana_password "$(random 24 hex)"
# Only the hash of the password: no commands of an administrator, none that empties Redis or reads all of its keys.
hash=$(tr -d '\n' <"$folder/redis_password" | openssl dgst -sha256 -r | cut -d ' ' -f 1)
put redis_acl "user default off
user concierge on #$hash ~* &* +@all -@admin -@dangerous +info +config|get"

# What comes from elsewhere is yours to put there; an empty file counts as no key.
for name in openai_api_key embeddings_api_key web_search_key; do
  [ -e "$folder/$name" ] && continue
  : >"$folder/$name"
  chmod 644 "$folder/$name"
  echo "made $folder/$name, which is empty: put the key there if you have one"
done
