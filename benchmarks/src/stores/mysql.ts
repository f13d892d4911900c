import { startMariadb } from '@locks/test-servers';
import mysql from 'mysql2/promise';
import { meterOf } from '../measure/meter.ts';
import { describedServer, type Store } from './store.ts';

/** The files of the tables. */
const TABLES = `SELECT SUM(FILE_SIZE) AS bytes FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE 'locks/%'`;

export const mysqlStore: Store = {
  id: 'mysql',
  counting: "`SHOW GLOBAL STATUS LIKE 'Com_%'`: the statements that clients sent",
  async start(connections) {
    const args = connections === undefined ? [] : [`--max-connections=${connections}`];
    return await describedServer(await startMariadb({ args }), async (server) => {
      const control = await mysql.createConnection(server.urlOf('admin'));
      const [versions] = await control.query<mysql.RowDataPacket[]>('SELECT VERSION() AS version');
      return {
        url: server.url,
        meter: meterOf({
          async read() {
            const [rows] = await control.query<mysql.RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Com\\_%'");
            return new Map(
              rows
                .map(
                  (row) => [String(row['Variable_name']).replace('Com_', ''), Number(row['Value'])] as const,
                )
                // Preparing is not executing, and what is executed is counted under its own name.
                .filter(([kind, count]) => count > 0 && !kind.startsWith('stmt_')),
            );
          },
          // The second reading counts itself.
          ownOperations: 1,
          ownKind: 'show_status',
        }),
        network: {
          addresses: [server],
          urlAt: ([at]) => `mysql://app@${at?.host}:${at?.port}/locks`,
        },
        async storedBytes() {
          const [rows] = await control.query<mysql.RowDataPacket[]>(TABLES);
          return Number(rows[0]?.['bytes']);
        },
        versions: { mariadb: String(versions[0]?.['version']).split('-')[0] as string },
        async stop() {
          control.destroy();
          await server.stop();
        },
      };
    });
  },
};
