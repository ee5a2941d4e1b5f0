import { table } from '../../dom';
import { PlaceRecord } from '../../record';
import { Panel } from '../panel';

function line(place: PlaceRecord | null): string {
  return place === null ? '' : `line ${place.line}`;
}

export const remarks: Panel = {
  name: 'remarks',
  title: 'Remarks',
  applies: ({ record }) => record.remarks.length + record.diagnostics.length > 0,
  render: ({ record }, element) => {
    if (record.diagnostics.length > 0) {
      element.append(
        table(
          'Errors and warnings',
          ['severity', 'message', 'place'],
          record.diagnostics.map(each => [each.severity, each.message, line(each.place)])
        )
      );
    }
    if (record.remarks.length > 0) {
      const values = (held: Readonly<Record<string, number | string>>): string =>
        Object.entries(held)
          .map(([name, value]) => `${name} = ${value}`)
          .join(', ');
      element.append(
        table(
          'What the passes did and could not do',
          ['pass', 'kind', 'message', 'numbers', 'place'],
          record.remarks.map(each => [each.pass_name, each.kind, each.message, values(each.values), line(each.place)])
        )
      );
    }
  }
};
