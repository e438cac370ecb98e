// Draws the report's charts, and lists the figures behind them.
//
// The tables are in the page already. What this script adds, per workload: one legend whose buttons show or hide an allocator in
// all charts of the workload, the charts, under each chart its figures as a table and as CSV, and the sortable lists per
// cache and call site. All text goes into the page through textContent, never as HTML. plotly.js treats labels as
// a small markup language, so names pass `label` on their way to it.
//
// Order of work: the figures are unpacked; legends and lists come first, since they need nothing else; then plotly.js is unpacked and run;
// then charts are drawn, those near the window at once and the rest while the browser is idle. `data-drawn` on a chart says that it is drawn.
// Colours are read from the style sheet each time a chart is drawn, so a change of theme is only another drawing.
'use strict';
(async () => {
  const unpack = async (id) => {
    if (!window.DecompressionStream) throw new Error('this browser has no DecompressionStream');
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
  };
  const report = JSON.parse(await unpack('data'));
  const charts = [];
  let printing = false;

  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  // plotly reads <b>, <a href> and the like in text, and entities.
  const label = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const shortened = (text, length) => (text.length > length ? text.slice(0, length - 1) + '…' : text);

  // Colours

  const probe = document.body.appendChild(element('span', { hidden: '' }));
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  const bars = (its) => ({ color: its.colour,
    pattern: its.hatch[0] ? { shape: its.hatch[0], bgcolor: its.colour, fgcolor: colour('paper'), size: its.hatch[1], solidity: 0.35 } : {} });

  // The look of a series: an allocator by its style, or the recorded kernel, requested bytes or the state before.
  const look = (key, styles) => {
    if (key in styles && styles[key] !== null) {
      const { colour: number, dash, hatch } = styles[key];
      return { colour: colour(`s${number}`), dash, hatch, width: 1.8, name: `s${number}` };
    }
    const plain = { dash: [], hatch: ['', 0], width: 1.8 };
    if (key === 'requested') return { ...plain, colour: colour('quiet'), dash: [2.5, 2.5], name: 'requested' };
    if (key === 'before') return { ...plain, colour: colour('quiet'), name: 'before' };
    if (key === 'peak') return { ...plain, colour: colour('peak'), name: 'peak' };
    if (key === 'live') return { ...plain, colour: colour('quiet'), name: 'before' };
    return { ...plain, colour: colour('recorded'), width: 2.4, name: 'recorded' };
  };

  const sample = ({ name, dash }) => {
    const space = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(space, 'svg');
    svg.setAttribute('class', `swatch ${name}`);
    svg.setAttribute('viewBox', '0 0 22 8');
    svg.setAttribute('aria-hidden', 'true');
    const path = svg.appendChild(document.createElementNS(space, 'path'));
    path.setAttribute('d', 'M0 4H22');
    if (dash.length) path.setAttribute('stroke-dasharray', dash.join(' '));
    return svg;
  };

  // Charts

  const trace = (chart, workload, one) => {
    const its = look(one.key, workload.styles);
    const drawn = { name: label(one.name), visible: !workload.hidden.has(one.key) };
    if (chart.kind === 'hbar') {
      return { ...drawn, type: 'bar', orientation: 'h', x: one.y, y: chart.names.map((_, place) => place),
               customdata: chart.names.map(label), hovertemplate: `%{customdata}: %{x:${chart.x.format}} ${chart.x.unit}<extra>%{fullData.name}</extra>`,
               marker: bars(its) };
    }
    const points = { ...drawn, x: workload.pool[one.x], y: one.y,
                     hovertemplate: `%{y:${chart.y.format}} ${chart.y.unit}<extra>%{fullData.name}</extra>` };
    if (chart.kind === 'bar') {
      return { ...points, type: 'bar',
               marker: bars(its) };
    }
    const dash = its.dash.length ? its.dash.map((length) => `${1.3 * length}px`).join(',') : 'solid';
    const line = { color: its.colour, width: its.width, dash, shape: chart.kind === 'step' ? 'hv' : 'linear' };
    return { ...points, type: 'scatter', line, mode: chart.kind === 'step' ? 'lines' : 'lines+markers', marker: { size: 6, color: its.colour } };
  };

  const axis = (title, more) => ({
    title: { text: title, standoff: 8, font: { size: 12 } }, gridcolor: colour('rule'), zeroline: false,
    linecolor: colour('quiet'), tickcolor: colour('quiet'), tickfont: { size: 11 }, automargin: true, ...more,
  });

  // From below 1, so that a single block has a bar.
  const logRange = (chart) => [Math.log10(0.6), Math.log10(2 * Math.max(5, ...chart.traces.flatMap((one) => one.y)))];

  // Without a fraction of an event on the axis.
  const fewEvents = (chart) => (Math.max(0, ...chart.traces.flatMap((one) => one.y)) < 5 ? { dtick: 1, range: [0, 5], autorange: false } : {});

  const height = (chart, workload) => {
    if (chart.kind !== 'hbar') return printing ? 270 : 320;
    const bars = chart.traces.filter((one) => !workload.hidden.has(one.key)).length || 1;
    return 64 + chart.names.length * Math.max(20, 8 + bars * 7);
  };

  const layout = (chart, workload, width) => {
    const common = {
      width, height: height(chart, workload), showlegend: false, uirevision: 'kept', bargap: 0.22, bargroupgap: 0,
      margin: { l: 8, r: 12, t: 8, b: 8 }, paper_bgcolor: colour('paper'), plot_bgcolor: colour('paper'),
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour('ink') },
      hoverlabel: { bgcolor: colour('paper'), bordercolor: colour('quiet'), font: { color: colour('ink'), size: 11 }, namelength: 40 },
      hovermode: chart.kind === 'hbar' ? 'closest' : 'x unified', dragmode: matchMedia('(pointer: coarse)').matches ? false : 'zoom',
      modebar: { bgcolor: 'rgba(0,0,0,0)', color: colour('quiet'), activecolor: colour('ink') },
    };
    if (chart.kind === 'hbar') {
      const room = Math.max(10, Math.min(48, Math.floor(width / 18)));
      return { ...common, margin: { ...common.margin, l: 4 },
        xaxis: axis(chart.x.title, { rangemode: 'tozero', tickformat: ',', nticks: Math.max(3, Math.floor(width / 110)) }),
        yaxis: axis('', { autorange: 'reversed', tickmode: 'array', tickvals: chart.names.map((_, place) => place), showgrid: false,
                          ticktext: chart.names.map((name) => label(shortened(name, room))), ticklabelstandoff: 4 }) };
    }
    const spike = { showspikes: true, spikemode: 'across', spikesnap: 'cursor', spikecolor: colour('quiet'), spikethickness: 1, spikedash: 'solid' };
    const byOrder = chart.kind === 'bar' || chart.kind === 'line';
    return { ...common,
      xaxis: axis(chart.x.title, byOrder ? { ...spike, dtick: 1, showgrid: false, hoverformat: 'd', unifiedhovertitle: { text: 'order %{x}' } }
                                         : { ...spike, showgrid: false, unifiedhovertitle: { text: '%{x} s' }, nticks: Math.max(4, Math.floor(width / 90)) }),
      yaxis: axis(chart.y.title, chart.y.log
        ? { type: 'log', dtick: 1, tickformat: ',', range: logRange(chart), autorange: false }
        : { rangemode: chart.y.signed ? 'normal' : 'tozero', tickformat: ',', zeroline: Boolean(chart.y.signed), zerolinecolor: colour('quiet'), ...(chart.y.whole ? fewEvents(chart) : {}),
            ...(chart.y.top ? { range: [-0.02 * chart.y.top, 1.04 * chart.y.top], autorange: false } : {}) }) };
  };

  const draw = (entry) => {
    const { chart, workload, plot } = entry;
    const width = printing ? (chart.kind === 'hbar' ? 900 : 470) : plot.clientWidth;
    plot.style.minHeight = '';
    Plotly.react(plot, chart.traces.map((one) => trace(chart, workload, one)), layout(chart, workload, width), {
      displaylogo: false, responsive: false, doubleClick: 'reset+autosize', displayModeBar: 'hover',
      modeBarButtons: [['zoom2d', 'pan2d', 'resetScale2d', 'toImage']],
      toImageButtonOptions: { format: 'svg', filename: `${workload.name}-${chart.id}` },
    });
    entry.drawn = true;
    plot.querySelector('.main-svg')?.setAttribute('aria-hidden', 'true');
    plot.dataset.drawn = 'yes';
  };

  const redraw = (chosen) => { for (const entry of charts) if (entry.drawn && chosen(entry)) draw(entry); };

  // Figures of a chart: a header and rows, the same for table and CSV

  const figures = (chart, workload) => {
    if (chart.kind === 'hbar') {
      return { header: [chart.y.name, ...chart.traces.map((one) => `${one.name} (${chart.x.unit})`)],
               rows: chart.names.map((name, place) => [name, ...chart.traces.map((one) => one.y[place])]) };
    }
    const unit = chart.y.unit ? ` (${chart.y.unit})` : '';
    const found = new Map();
    chart.traces.forEach((one, column) => workload.pool[one.x].forEach((x, place) => {
      if (!found.has(x)) found.set(x, new Array(chart.traces.length).fill(null));
      found.get(x)[column] = one.y[place];
    }));
    return { header: [chart.x.name, ...chart.traces.map((one) => one.name + unit)],
             rows: [...found].sort((a, b) => a[0] - b[0]).map(([x, row]) => [x, ...row]) };
  };

  const shown = (value) => {
    if (value === null || value === undefined) return '–';
    return typeof value === 'number' ? value.toLocaleString('en', { maximumFractionDigits: 6 }) : value;
  };

  // A leading =, +, - or @ in text would be a formula to a spreadsheet.
  const quoted = (value) => {
    if (value === null || value === undefined) return '';
    if (typeof value === 'number') return String(value);
    return `"${value.replace(/^[=+\-@\t\r]/, "'$&").replace(/"/g, '""')}"`;
  };

  const csvLink = (name, content) => {
    const link = element('a', { href: '#', download: `${name}.csv` }, 'Download as CSV');
    link.addEventListener('click', (event) => {
      if (link.dataset.ready) return;
      event.preventDefault();
      const { header, rows } = content();
      const text = [header, ...rows].map((row) => row.map(quoted).join(',')).join('\r\n') + '\r\n';
      link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
      link.dataset.ready = 'yes';
      link.click();
      setTimeout(() => { URL.revokeObjectURL(link.href); link.href = '#'; delete link.dataset.ready; }, 10000);
    });
    return link;
  };

  const fill = (body, rows) => body.replaceChildren(...rows.map((row) => element('tr', {}, ...row.map((value, place) =>
    (place === 0 ? element('th', { scope: 'row' }, shown(value)) : element('td', {}, shown(value)))))));

  const once = (details, build) => details.addEventListener('toggle', () => {
    if (details.open && !details.dataset.built) { details.dataset.built = 'yes'; build(); }
  });

  const figureDetails = (chart, workload) => {
    const details = element('details', { class: 'figures' }, element('summary', {}, 'Figures of this chart'));
    once(details, () => {
      const { header, rows } = figures(chart, workload);
      const body = element('tbody');
      const head = element('thead', {}, element('tr', {}, ...header.map((title) => element('th', { scope: 'col' }, title))));
      fill(body, rows);
      details.append(element('div', { class: 'tools' }, csvLink(`${workload.name}-${chart.id}`, () => figures(chart, workload))),
                     element('div', { class: 'scroll tall', tabindex: '0' }, element('table', {}, head, body)));
    });
    return details;
  };

  // Lists per cache and call site

  const list = (workload, name, title, first, data) => {
    const details = element('details', { class: 'figures' },
      element('summary', {}, `${title}: ${data.rows.length.toLocaleString('en')} rows, sortable`));
    once(details, () => {
      let column = 1 + data.columns.findIndex((one) => one.startsWith('peak')) + 1, descending = true;
      const listed = new Set(data.rows.map((row) => row[0]));
      const select = element('select', { 'aria-label': 'Allocator' },
        ...[...listed].map((place) => element('option', { value: place }, data.series[place])));
      const search = element('input', { type: 'search', placeholder: `find a ${first}`, 'aria-label': `Find a ${first}` });
      const header = [first, ...data.columns];
      const heads = header.map((one, place) => {
        const button = element('button', { type: 'button' }, one);
        button.addEventListener('click', () => {
          descending = column === place + 1 ? !descending : place > 0;
          column = place + 1;
          update();
        });
        return element('th', { scope: 'col', class: 'sort' }, button);
      });
      const body = element('tbody');
      const compare = (a, b) => (typeof a === 'string' ? a.localeCompare(b, 'en') : (a ?? -1) - (b ?? -1));
      const chosen = () => data.rows.filter((row) => row[0] === Number(select.value || 0) && row[1].toLowerCase().includes(search.value.toLowerCase()))
        .sort((a, b) => (descending ? compare(b[column], a[column]) : compare(a[column], b[column]))).map((row) => row.slice(1));
      const update = () => {
        heads.forEach((head, place) => {
          if (place + 1 === column) head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
          else head.removeAttribute('aria-sort');
        });
        fill(body, chosen());
      };
      select.addEventListener('change', update);
      search.addEventListener('input', update);
      const omitted = data.left_out ? `${data.left_out.toLocaleString('en')} smaller rows are left out to keep the file small.` : '';
      details.append(
        element('div', { class: 'tools' }, ...(listed.size > 1 ? [select] : []), search,
                csvLink(`${workload.name}-${name}`, () => ({ header: ['allocator', ...header], rows: data.rows.map((row) => [data.series[row[0]], ...row.slice(1)]) })),
                element('span', {}, omitted)),
        element('div', { class: 'scroll tall', tabindex: '0' },
                element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body)));
      update();
    });
    return details;
  };

  // Legend

  const legend = (workload, place) => {
    const names = new Map();
    for (const chart of workload.charts) {
      if (chart.id === 'sites') continue;
      for (const one of chart.traces) if (!names.has(one.key)) names.set(one.key, one.name.replace(/, after$/, ''));
    }
    const last = ['recorded', 'requested', 'before'];
    const keys = [...names.keys()].sort((a, b) => last.findIndex((one) => a === one) - last.findIndex((one) => b === one));
    const buttons = new Map(keys.map((key) => {
      const button = element('button', { type: 'button', title: 'Show or hide; with Shift: show only this one', 'data-key': key },
                             sample(look(key, workload.styles)), names.get(key));
      button.addEventListener('click', (event) => {
        if (event.shiftKey) {
          const alone = workload.hidden.size === keys.length - 1 && !workload.hidden.has(key);
          workload.hidden = new Set(alone ? [] : keys.filter((other) => other !== key));
        } else if (!workload.hidden.delete(key)) workload.hidden.add(key);
        press();
        redraw((entry) => entry.workload === workload);
      });
      return [key, button];
    }));
    const press = () => buttons.forEach((button, key) => button.setAttribute('aria-pressed', String(!workload.hidden.has(key))));
    press();
    place.append(...buttons.values());
  };

  const figure = (chart, workload) => {
    const title = element('h3', { id: `${workload.id}-${chart.id}` }, chart.title);
    const key = chart.id === 'sites' ? element('p', {}, ...chart.traces.flatMap((one) => [sample(look(one.key, {})), one.name, ' \u2003'])) : '';
    const holder = element('figure', { class: `chart${chart.kind === 'hbar' ? ' wide' : ''}`, 'aria-labelledby': title.id, 'data-chart': chart.id });
    const known = chart.traces.flatMap((one) => one.y.filter((value) => value !== null));
    const any = known.some((value) => value !== 0);
    holder.append(title, element('p', {}, any ? chart.note : ''), ...(any ? [key] : []));
    if (!any) {
      holder.append(element('div', { class: 'empty' }, known.length ? 'Every figure of this chart is 0.' : 'The records hold no figures for this chart.'));
      return holder;
    }
    const plot = element('div', { class: 'plot', role: 'img', 'aria-label': `${chart.title}, ${workload.name}. The figures are listed below the chart.` });
    plot.style.minHeight = `${height(chart, workload)}px`;
    holder.append(plot, figureDetails(chart, workload));
    charts.push({ chart, workload, plot, drawn: false });
    return holder;
  };

  for (const workload of report.workloads) {
    const section = document.getElementById(workload.id);
    workload.hidden = new Set();
    legend(workload, section.querySelector('.legend'));
    section.querySelector('.charts').append(...workload.charts.map((chart) => figure(chart, workload)));
    for (const [name, title, first] of [['caches', 'Every cache', 'cache'], ['sites', 'Every call site', 'call site']]) {
      const data = workload.tables[name];
      if (data.rows.length) section.querySelector('.lists').append(list(workload, name, title, first, data));
    }
  }

  // Theme

  const themes = ['', 'light', 'dark'];
  const button = document.getElementById('theme');
  const setTheme = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    button.textContent = `theme: ${theme || 'system'}`;
    redraw(() => true);
  };
  button.addEventListener('click', () => setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme || '') + 1) % 3]));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw(() => true));

  // Print in light colours, at the width of the paper, whatever is on the screen; charts not yet drawn are drawn first.
  let before = '';
  addEventListener('beforeprint', () => {
    before = document.documentElement.dataset.theme || '';
    printing = true;
    document.documentElement.dataset.theme = 'light';
    if (window.Plotly) charts.forEach(draw);
  });
  addEventListener('afterprint', () => { printing = false; setTheme(before); });

  let resized = 0;
  addEventListener('resize', () => {
    clearTimeout(resized);
    resized = setTimeout(() => { if (!printing) redraw((entry) => entry.plot.clientWidth !== entry.plot._fullLayout?.width); }, 120);
  });

  // Start: unpack plotly.js, then draw

  const start = () => {
    const idle = window.requestIdleCallback || ((work) => setTimeout(work, 30));
    const watcher = new IntersectionObserver((seen) => seen.filter((one) => one.isIntersecting).forEach((one) => {
      watcher.unobserve(one.target);
      const entry = charts.find((other) => other.plot === one.target);
      if (!entry.drawn) draw(entry);
    }), { rootMargin: '400px' });
    charts.forEach((entry) => watcher.observe(entry.plot));
    const rest = () => {
      const entry = charts.find((one) => !one.drawn);
      if (!entry) { document.documentElement.dataset.charts = 'drawn'; return; }
      draw(entry);
      idle(rest);
    };
    idle(rest);
  };

  document.head.append(element('script', {}, await unpack('plotly')));
  if (!window.Plotly) throw new Error('plotly.js did not start');
  start();
})().catch((error) => {
  const alert = document.getElementById('alert');
  alert.textContent = `The charts can't be drawn: ${error.message}. The tables are whole; a browser of 2023 or later draws the charts.`;
  alert.hidden = false;
});
