// Each library opens its transaction with `begin`, and `executor` runs a statement in it: these are the lines that docs/guides/in-your-application.md shows.

const url = process.env.POSTGRES_URL;

/** A pool of pg, for the libraries that take one. */
async function pgPool() {
  const { default: pg } = await import('pg');
  return new pg.Pool({ connectionString: url });
}

export const libraries = {
  async pg() {
    const pool = await pgPool();
    return {
      async begin(work) {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          const result = await work(client);
          await client.query('COMMIT');
          return result;
        } catch (error) {
          await client.query('ROLLBACK');
          throw error;
        } finally {
          client.release();
        }
      },
      async nested(client, work) {
        await client.query('SAVEPOINT nested');
        try {
          return await work(client);
        } catch (error) {
          await client.query('ROLLBACK TO SAVEPOINT nested');
          throw error;
        }
      },
      executor: (client) => client,
      outside: pool,
      end: () => pool.end(),
    };
  },

  async 'postgres.js'() {
    const { default: postgres } = await import('postgres');
    const sql = postgres(url, { onnotice() {} });
    return {
      begin: (work) => sql.begin(work),
      nested: (tx, work) => tx.savepoint(work),
      executor: (tx) => tx,
      outside: sql,
      end: () => sql.end(),
    };
  },

  async kysely() {
    const { CompiledQuery, Kysely, PostgresDialect } = await import('kysely');
    const db = new Kysely({ dialect: new PostgresDialect({ pool: await pgPool() }) });
    return {
      begin: (work) => db.transaction().execute(work),
      executor: (trx) => (text, values) => trx.executeQuery(CompiledQuery.raw(text, [...values])),
      refused: (trx) => trx,
      outside: (text, values) => db.executeQuery(CompiledQuery.raw(text, [...values])),
      end: () => db.destroy(),
    };
  },

  async knex() {
    const { default: knex } = await import('knex');
    const db = knex({ client: 'pg', connection: url });
    const executorOf = (trx) => (text, values) =>
      trx.raw(
        text.replaceAll(/\$(\d+)/g, ':p$1'),
        Object.fromEntries(values.map((value, i) => [`p${i + 1}`, value])),
      );
    return {
      begin: (work) => db.transaction(work),
      nested: (trx, work) => trx.transaction(work),
      executor: executorOf,
      refused: (trx) => trx,
      outside: executorOf(db),
      end: () => db.destroy(),
    };
  },

  async drizzle() {
    const { sql } = await import('drizzle-orm');
    const { drizzle } = await import('drizzle-orm/node-postgres');
    const pool = await pgPool();
    return drizzleOn(sql, drizzle({ client: pool }), () => pool.end());
  },

  async 'drizzle on postgres.js'() {
    const { sql } = await import('drizzle-orm');
    const { drizzle } = await import('drizzle-orm/postgres-js');
    const { default: postgres } = await import('postgres');
    const client = postgres(url, { onnotice() {} });
    return drizzleOn(sql, drizzle({ client }), () => client.end());
  },

  async typeorm() {
    await import('reflect-metadata');
    const { DataSource } = await import('typeorm');
    const source = await new DataSource({ type: 'postgres', url }).initialize();
    return {
      begin: (work) => source.transaction(work),
      nested: (manager, work) => manager.transaction(work),
      executor: (manager) => manager,
      outside: source.manager,
      end: () => source.destroy(),
    };
  },

  async mikroorm() {
    const { defineEntity, MikroORM, p } = await import('@mikro-orm/postgresql');
    const Stock = defineEntity({
      name: 'Stock',
      tableName: 'unused',
      properties: { sku: p.integer().primary() },
    });
    const orm = await MikroORM.init({ clientUrl: url, entities: [Stock] });
    const executorOf = (em) => (text, values) =>
      em
        .getConnection()
        .execute(text.replaceAll(/\$\d+/g, '?'), [...values], 'all', em.getTransactionContext());
    return {
      begin: (work) => orm.em.fork().transactional(work),
      nested: (em, work) => em.transactional(work),
      executor: executorOf,
      refused: (em) => em,
      outside: executorOf(orm.em.fork()),
      end: () => orm.close(),
    };
  },
  async prisma() {
    const { PrismaPg } = await import('@prisma/adapter-pg');
    const { PrismaClient } = await import('./prisma-generated/client.ts');
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
    return {
      begin: (work) => prisma.$transaction(work),
      executor: (tx) => (text, values) => tx.$queryRawUnsafe(text, ...values),
      refused: (tx) => tx,
      outside: (text, values) => prisma.$queryRawUnsafe(text, ...values),
      end: () => prisma.$disconnect(),
    };
  },
};

function drizzleOn(sql, db, end) {
  const executorOf = (tx) => (text, values) => {
    const parts = text.split(/\$\d+/).map((part) => sql.raw(part));
    return tx.execute(
      sql.join(parts.flatMap((part, i) => (i < values.length ? [part, sql.param(values[i])] : [part]))),
    );
  };
  return {
    begin: (work) => db.transaction(work),
    nested: (tx, work) => tx.transaction(work),
    executor: executorOf,
    refused: (tx) => tx,
    outside: executorOf(db),
    end,
  };
}
