import { startMariadb } from '@locks/test-servers';
import mysql from 'mysql2/promise';
import { meterOf } from '../measure/meter.ts';
import type { Store } from './store.ts';

export const mysqlStore: Store = {
  id: 'mysql',
  counting: '`SHOW GLOBAL STATUS LIKE \'Questions\'`: the statements that clients sent',
  async start() {
    const server = await startMariadb();
    try {
      const control = await mysql.createConnection(server.urlOf('admin'));
      const [versions] = await control.query<mysql.RowDataPacket[]>('SELECT VERSION() AS version');
      return {
        url: server.url,
        meter: meterOf({
          async read() {
            const [rows] = await control.query<mysql.RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Questions'");
            return new Map(rows.map((row) => ['statements', Number(row['Value'])]));
          },
          // The second reading counts itself.
          ownOperations: 1,
          ownKind: 'statements',
        }),
        versions: { mariadb: String(versions[0]?.['version']).split('-')[0] as string },
        async stop() {
          control.destroy();
          await server.stop();
        },
      };
    } catch (error) {
      await server.stop();
      throw error;
    }
  },
};
