"""One world of boats in plain Python, one number at a time, written from the rules and not from our code."""

import math
from dataclasses import dataclass, field

RADIUS = 0.5 * math.hypot(5.0, 2.5)
TABLE = (0.0, -500.0, -1000.0, 500.0, 1000.0)


@dataclass
class Boat:
    x: float
    y: float
    heading: float
    goal: tuple
    water: list
    thrust: list
    ground: list = field(default_factory=lambda: [0.0, 0.0, 0.0])
    ended: bool = False


def wrap(angle):
    return (angle + math.pi) % (2 * math.pi) - math.pi


def turned(x, y, angle):
    """The vector in axes that are turned by `angle`."""
    return math.cos(angle) * x + math.sin(angle) * y, -math.sin(angle) * x + math.cos(angle) * y


def flow(x, y, cores):
    total_x = total_y = 0.0
    for core_x, core_y, clockwise, circulation in cores:
        d_x, d_y = core_x - x, core_y - y
        n = math.hypot(d_x, d_y)
        speed = circulation * n / (2 * math.pi * 0.25) if n <= 0.5 else circulation / (2 * math.pi * n)
        sign = 1 if clockwise else -1
        total_x += sign * speed * -d_y / n
        total_y += sign * speed * d_x / n
    return total_x, total_y


def sail(boat, change, cores):
    """Half a second in ten parts; `change` is what the thrusters are told to add, in newtons."""
    for part in range(10):
        current = flow(boat.x, boat.y, cores)
        boat.ground = [boat.water[0] + current[0], boat.water[1] + current[1], boat.water[2]]
        boat.x += 0.05 * boat.ground[0]
        boat.y += 0.05 * boat.ground[1]
        boat.heading = (boat.heading + 0.05 * boat.water[2]) % (2 * math.pi)
        if part == 0:
            boat.thrust = [min(1000.0, max(-500.0, t + c)) for t, c in zip(boat.thrust, change, strict=True)]
        u_r, v_r = turned(boat.water[0], boat.water[1], boat.heading)
        u, v = turned(boat.ground[0], boat.ground[1], boat.heading)
        r, (left, right) = boat.water[2], boat.thrust
        surge = (400 * r * v - (100 + 150 * abs(u_r)) * u_r + left + right) / 380
        sway = (-400 * r * u + 20 * u_r * r - (100 + 150 * abs(v_r)) * v_r) / 400
        yaw = (-20 * u_r * v_r - (980 + 950 * abs(r)) * r + 1.25 * (left - right)) / 1430
        x, y = turned(u_r + 0.05 * surge, v_r + 0.05 * sway, -boat.heading)
        boat.water = [x, y, r + 0.05 * yaw]


def view(boat):
    goal = turned(boat.goal[0] - boat.x, boat.goal[1] - boat.y, boat.heading)
    return [*goal, *turned(boat.ground[0], boat.ground[1], boat.heading), boat.ground[2], *boat.thrust]


def seen(boat, boats, obstacles, *, reach=20.0, count=5):
    """Rows of what `boat` sees without noise, nearest edge first."""
    things = [(x, y, 0.0, 0.0, radius) for x, y, radius in obstacles]
    things += [(b.x, b.y, b.ground[0], b.ground[1], RADIUS) for b in boats if b is not boat and not b.ended]
    rows = []
    for x, y, v_x, v_y, radius in things:
        distance = math.hypot(x - boat.x, y - boat.y)
        if distance <= reach + radius:
            place = turned(x - boat.x, y - boat.y, boat.heading)
            rows.append((distance - radius, [*place, *turned(v_x, v_y, boat.heading), radius]))
    return [row for _, row in sorted(rows, key=lambda row: row[0])[:count]]


def rule_angle(rows, own):
    """By how much the first encounter that is not heeded is not heeded."""
    for p_x, p_y, v_x, v_y, radius in rows:
        if math.hypot(v_x, v_y) < 0.5 or math.hypot(*own) < 0.5:
            continue
        course = math.atan2(v_y, v_x)
        e_x, e_y = turned(-p_x, -p_y, course)
        psi = math.atan2(*reversed(turned(*own, course)))
        crossing = -9 <= e_x <= 12 and -17 <= e_y <= 0 and not e_y + 7 > -(7 / 12) * (e_x - 12)
        crossing = crossing and math.pi / 4 <= psi <= 3 * math.pi / 4
        head_on = 0 <= e_x <= 17 and abs(e_y) <= 4.5 and abs(psi) > 3 * math.pi / 4
        margin, distance = radius + 1, math.hypot(p_x, p_y)
        if not (crossing or head_on) or distance < margin:
            continue
        tangent = math.asin(margin / distance) + math.atan2(RADIUS, math.sqrt(distance**2 - margin**2))
        angle = wrap(wrap(math.atan2(p_y, p_x) + tangent) - math.atan2(own[1], own[0]))
        if angle > 0:
            return angle
    return 0.0


def step(boats, actions, *, obstacles, cores):
    """One step of the world; a list of reward, view, rows and ending for each boat, None for ended ones."""
    acting = [boat for boat in boats if not boat.ended]
    before = {id(b): math.hypot(b.x - b.goal[0], b.y - b.goal[1]) for b in acting}
    for boat, action in zip(boats, actions, strict=True):
        if boat.ended:
            continue
        rates = (
            (TABLE[action // 5], TABLE[action % 5])
            if isinstance(action, int)
            else (
                1000.0 * action[0],
                1000.0 * action[1],
            )
        )
        sail(boat, [0.5 * rate for rate in rates], cores)
    results = []
    for boat in boats:
        if boat.ended:
            results.append(None)
            continue
        rows, own = seen(boat, boats, obstacles), view(boat)
        left = math.hypot(boat.x - boat.goal[0], boat.y - boat.goal[1])
        others = [(b.x, b.y, RADIUS) for b in acting if b is not boat] + list(obstacles)
        hit = any(math.hypot(x - boat.x, y - boat.y) - radius - RADIUS <= 0 for x, y, radius in others)
        reward = -0.1 + before[id(boat)] - left - 0.1 * rule_angle(rows, own[2:4])
        ending = "collision" if hit else "goal" if left <= 2.0 else None
        reward += {"collision": -5.0, "goal": 10.0, None: 0.0}[ending]
        results.append((reward, own, rows, ending))
    for boat, result in zip(boats, results, strict=True):
        boat.ended = boat.ended or (result is not None and result[3] is not None)
    return results
