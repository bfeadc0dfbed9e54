#!/bin/sh
# The services' own role: owner of its database, no superuser, so that row-level security holds for it.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$(cat /run/secrets/database_password)" --username "$POSTGRES_USER" <<'SQL'
create role concierge login nosuperuser nobypassrls password :'password';
create database concierge owner concierge;
SQL
