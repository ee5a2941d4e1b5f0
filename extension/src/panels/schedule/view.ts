import { table } from '../../dom';
import { Panel } from '../panel';

export const schedule: Panel = {
  name: 'schedule',
  title: 'Schedule',
  applies: ({ record }) => record.choices.length > 0,
  render: ({ record }, element) => {
    element.append(
      table(
        'Every choice that took effect, and where it came from',
        ['address', 'choice', 'value', 'origin', 'why'],
        record.choices.map(each => [each.address, each.name, each.value, each.origin, each.why])
      )
    );
  }
};
