import { startPostgres } from '@locks/test-servers';
import { meterOf } from '../measure/meter.ts';
import { describedServer, type Store } from './store.ts';

/** Without our own readings; statements inside functions are not reported (`track = top`). */
const CALLS = `SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 80) AS kind, sum(calls) AS calls
FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' GROUP BY 1`;

const TIME = `SELECT sum(total_exec_time) AS ms FROM pg_stat_statements
WHERE query NOT LIKE '%pg_stat_statements%'`;

export const postgresStore: Store = {
  id: 'postgres',
  counting:
    '`pg_stat_statements`: the calls of every statement that a client sent; not those inside functions',
  async start(connections) {
    const settings = {
      ...(connections !== undefined && { max_connections: connections }),
      shared_preload_libraries: 'pg_stat_statements',
      'pg_stat_statements.track': 'top',
    };
    return await describedServer(await startPostgres({ settings }), async (server) => {
      await server.query('CREATE EXTENSION pg_stat_statements');
      const [version] = await server.query('SHOW server_version');
      return {
        url: server.url,
        meter: meterOf({
          async read() {
            const rows = await server.query(CALLS);
            return new Map(rows.map(({ kind, calls }) => [String(kind), Number(calls)]));
          },
          async spent() {
            const [row] = await server.query(TIME);
            return 1000 * Number(row?.['ms'] ?? 0);
          },
          ownOperations: 0,
        }),
        network: {
          addresses: [server],
          urlAt: ([at]) => `postgres://postgres@${at?.host}:${at?.port}/postgres`,
        },
        async storedBytes() {
          const [row] = await server.query('SELECT pg_database_size(current_database()) AS bytes');
          return Number(row?.['bytes']);
        },
        versions: { postgresql: String(version?.['server_version']).split(' ')[0] as string },
      };
    });
  },
};
