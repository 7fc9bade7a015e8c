# Begins as root, as the official image does: the password's file may belong to another user.
set -eu
export PGDATA=/var/lib/postgresql/data
password=/run/postgresql/password
install -o postgres -m 600 "$POSTGRES_PASSWORD_FILE" "$password"
chown postgres "$PGDATA"
chmod 700 "$PGDATA"
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    as_postgres initdb --username="$POSTGRES_USER" --pwfile="$password" --auth=scram-sha-256 --auth-local=trust --locale=C.UTF-8
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    as_postgres pg_ctl --wait --options='-c listen_addresses=' start
    for file in /docker-entrypoint-initdb.d/*.sql; do
        as_postgres psql --username="$POSTGRES_USER" --dbname=postgres --set=ON_ERROR_STOP=1 --file="$file"
    done
    as_postgres pg_ctl --wait stop
fi
rm "$password"
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -c listen_addresses='*'
