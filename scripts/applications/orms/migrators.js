// How each library migrates: `open(pool, table)` gives what runs its migrations, among them one that makes the table, waits, and says who it was.
import { mkdtempSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const statements = (table) => [
  `CREATE TABLE ${table} (id int)`,
  `INSERT INTO migrated (table_name, pid) VALUES ('${table}', ${process.pid})`,
  'SELECT pg_sleep(0.5)',
];

export const migrators = {
  async drizzle(pool, table) {
    const { drizzle } = await import('drizzle-orm/node-postgres');
    const { migrate } = await import('drizzle-orm/node-postgres/migrator');
    const migrationsFolder = mkdtempSync(join(tmpdir(), 'drizzle-'));
    mkdirSync(join(migrationsFolder, 'meta'));
    const entry = { idx: 0, version: '7', when: 1_790_000_000_000, tag: '0000_first', breakpoints: true };
    const journal = { version: '7', dialect: 'postgresql', entries: [entry] };
    writeFileSync(join(migrationsFolder, 'meta/_journal.json'), JSON.stringify(journal));
    writeFileSync(
      join(migrationsFolder, '0000_first.sql'),
      statements(table).join(';\n--> statement-breakpoint\n'),
    );
    const db = drizzle({ client: pool });
    return { migrate: () => migrate(db, { migrationsFolder, migrationsTable: `${table}_log` }) };
  },

  async typeorm(_pool, table) {
    await import('reflect-metadata');
    const { DataSource } = await import('typeorm');
    const First1790000000000 = class First1790000000000 {
      name = 'First1790000000000';
      async up(runner) {
        for (const statement of statements(table)) await runner.query(statement);
      }
      async down() {}
    };
    const source = new DataSource({
      type: 'postgres',
      url: process.env.POSTGRES_URL,
      migrations: [First1790000000000],
      migrationsTableName: `${table}_log`,
    });
    await source.initialize();
    return { migrate: () => source.runMigrations(), end: () => source.destroy() };
  },

  async knex(_pool, table) {
    const { default: knex } = await import('knex');
    const migrationSource = {
      getMigrations: async () => ['first'],
      getMigrationName: (name) => name,
      getMigration: async () => ({
        async up(db) {
          for (const statement of statements(table)) await db.raw(statement);
        },
        async down() {},
      }),
    };
    const db = knex({
      client: 'pg',
      connection: process.env.POSTGRES_URL,
      migrations: { migrationSource, tableName: `${table}_log` },
    });
    return {
      async migrate() {
        // The lock of a process that died while it migrated stays in Knex's own table. Nobody else migrates now, so it may go.
        await db.migrate.forceFreeMigrationsLock();
        await db.migrate.latest();
      },
      end: () => db.destroy(),
    };
  },

  async umzug(pool, table) {
    const { Umzug } = await import('umzug');
    const storage = {
      async executed() {
        await pool.query(`CREATE TABLE IF NOT EXISTS ${table}_log (name text PRIMARY KEY)`);
        return (await pool.query(`SELECT name FROM ${table}_log`)).rows.map(({ name }) => name);
      },
      logMigration: ({ name }) => pool.query(`INSERT INTO ${table}_log VALUES ($1)`, [name]),
      unlogMigration: ({ name }) => pool.query(`DELETE FROM ${table}_log WHERE name = $1`, [name]),
    };
    const up = async () => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        for (const statement of statements(table)) await client.query(statement);
        await client.query('COMMIT');
      } finally {
        client.release();
      }
    };
    const umzug = new Umzug({ migrations: [{ name: 'first', up }], storage, logger: undefined });
    return { migrate: () => umzug.up() };
  },

  async kysely(pool, table) {
    const { CompiledQuery, Kysely, PostgresDialect } = await import('kysely');
    const { Migrator } = await import('kysely/migration');
    const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
    const up = async (trx) => {
      for (const statement of statements(table)) await trx.executeQuery(CompiledQuery.raw(statement));
    };
    const migrator = new Migrator({
      db,
      provider: { getMigrations: async () => ({ first: { up } }) },
      migrationTableName: `${table}_log`,
      migrationLockTableName: `${table}_lock`,
    });
    return {
      async migrate() {
        const { error } = await migrator.migrateToLatest();
        if (error !== undefined) throw error;
      },
    };
  },
};
